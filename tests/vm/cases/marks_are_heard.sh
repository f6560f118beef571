# Marks are heard by record and by the service, on older kernels by other means than the tracepoint of unknown options.
# needs: onbeat dbus-daemon talker.c
onbeat record -q -o /tmp/marks -- talker ends
check "the mark is heard" "$(grep -c '"said":"real_time_started"' /tmp/marks)" = 1
check "doctor says so" "$(onbeat doctor | grep -cE '^marks .*(are received|received by)')" = 1

printf 'always = true\nscan = "200ms"\n[[rule]]\nname = "it"\nprogram = "/usr/bin/talker"\n' >/tmp/onbeat.toml
start_service /tmp/onbeat.toml
talker works &
# Its jobs are longer apart than it declares, which only who hears them can tell.
wait_until "the service hears its jobs" 60 grep -qE 'it marks its jobs|but marks one each' /tmp/service
