# Marks are heard by record and, on older kernels, by other means than the tracepoint of unknown options.
# needs: onbeat talker.c
onbeat record -q -o /tmp/marks -- talker ends
check "the mark is heard" "$(grep -c '"said":"real_time_started"' /tmp/marks)" = 1
check "doctor says so" "$(onbeat doctor | grep -c '^marks .*heard')" = 1
