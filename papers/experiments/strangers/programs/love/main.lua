-- Draws 150 circles, and sleeps until the next frame is due, as games without vsync do.
local times, due = {}, love.timer.getTime()
function love.load() love.window.setMode(320, 240, { vsync = 0 }) end
function love.draw()
  for i = 1, 150 do
    love.graphics.setColor(i / 150, 0.5, 0.5)
    love.graphics.circle('fill', 160 + 120 * math.sin(i + #times / 40), 120 + 100 * math.cos(i * 1.3), 6)
  end
  times[#times + 1] = love.timer.getTime() * 1000
  due = math.max(due + 1 / 60, love.timer.getTime() - 1 / 60)
  love.timer.sleep(math.max(0, due - love.timer.getTime()))
  if times[#times] - times[1] > os.getenv('SECONDS_TO_RUN') * 1000 then
    print(table.concat(times, '\n'))
    love.event.quit()
  end
end
