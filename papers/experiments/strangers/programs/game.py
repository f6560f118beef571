"""A game: Clock.tick(60) and 400 sprites drawn in software; tells when its frames were flipped."""
import os
import random
import time

import pygame

pygame.display.init()
screen = pygame.display.set_mode((800, 600))
sprite = pygame.Surface((32, 32))
sprite.fill((200, 80, 80))
places = [[random.randrange(768), random.randrange(568), random.choice((-3, 3)), random.choice((-2, 2))] for _ in range(400)]
clock, times = pygame.time.Clock(), []
while not times or times[-1] - times[0] < float(os.environ["SECONDS_TO_RUN"]) * 1000:
    pygame.event.get()
    screen.fill((20, 20, 40))
    for p in places:
        p[0] += p[2]
        p[1] += p[3]
        if not 0 < p[0] < 768:
            p[2] = -p[2]
        if not 0 < p[1] < 568:
            p[3] = -p[3]
        screen.blit(sprite, p[:2])
    pygame.display.flip()
    times.append(time.monotonic() * 1000)
    clock.tick(60)
print(*times)
