extends Node2D

var times = []

func _process(_delta):
	times.append(OS.get_ticks_usec() / 1000.0)
	update()
	if times[-1] - times[0] > float(OS.get_environment("SECONDS_TO_RUN")) * 1000:
		for time in times:
			print(time)
		get_tree().quit()

func _draw():
	for i in range(150):
		draw_circle(Vector2(160 + 120 * sin(i + times.size() / 40.0), 120 + 100 * cos(i * 1.3)), 6, Color(i / 150.0, 0.5, 0.5))
