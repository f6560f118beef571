# shellcheck shell=bash disable=SC2154,SC2034
# Studios: programs on a sound server. programs.sh says what stands here.

# A studio on JACK's dummy driver: COMMAND, until a port of its matches REGEX; then cycles without an xrun, the server's own DSP load, and who has
# taken a real-time priority. REALTIME is the server's option.
studio() { # REGEX COMMAND PREFIX...
    local regex=$1 command=$2
    shift 2
    HOME=$WORK on_jack "jack_wait -s \$JACK_DEFAULT_SERVER -w -t 10 >/dev/null; ($command) >$WORK/said 2>&1 & studio=\$!
        until jack_lsp 2>/dev/null | grep -q '$regex'; do sleep 0.1; done
        sleep 0.5; : >$WORK/jackd; timeout $SECONDS_TO_RUN jack_cpu_load >$WORK/load; grep -c 'XRun' $WORK/jackd >$WORK/xruns
        ps -eLo cls=,rtprio=,comm= | grep FF | grep 'jackd\|audioengine\|RT-main\|zyn\|jalv' | sort | uniq -c >$WORK/first
        kill \$studio; true" "$@" 2>"$WORK/errors"
    [ -s "$WORK/xruns" ] || exit 1
    echo "count $((SECONDS_TO_RUN * 48000 / 256 - $(cat "$WORK/xruns")))"
    awk '/DSP load/ { sum += $4; n++ } END { if (n) printf "dsp %.1f\n", sum / n }' "$WORK/load"
    awk '{ printf "%s%dx %s %d", NR == 1 ? "note SCHED_FIFO: " : ", ", $1, $4, $3 } END { if (NR) print "" }' "$WORK/first"
}
zyn="exec zynaddsubfx -U -I null -O jack -a -N zyn"
jalv="tail -f /dev/null | jalv -x http://drobilla.net/plugins/mda/Piano >/dev/null"
ardour="[ -d $CACHE/session ] || ardour7-new_session -s 48000 $CACHE/session session; cp -r $CACHE/session $WORK/session
    export LD_LIBRARY_PATH=/usr/lib/ardour7 ARDOUR_DLL_PATH=/usr/lib/ardour7 ARDOUR_DATA_PATH=/usr/share/ardour7 ARDOUR_CONFIG_PATH=/etc/ardour7
    exec /usr/lib/ardour7/hardour-* $WORK/session session"

#: zyn | ZynAddSubFX on JACK, which take SCHED_FIFO | cycles without xrun | C++ | studios
prepare_zyn() { need zynaddsubfx jackd ps; }
run_zyn() { REALTIME=--realtime studio zyn:out "$zyn" "$@"; }

#: zyn-ordinary | ZynAddSubFX on JACK without real-time priorities | cycles without xrun | C++ | studios
prepare_zyn-ordinary() { need zynaddsubfx jackd ps; }
run_zyn-ordinary() { studio zyn:out "$zyn" "$@"; }

#: jalv | jalv with an LV2 plug-in on JACK, which take SCHED_FIFO | cycles without xrun | C | studios
prepare_jalv() { need jalv jackd ps; }
run_jalv() { REALTIME=--realtime studio left_out "$jalv" "$@"; }

#: ardour | Ardour, headless, on JACK, which take SCHED_FIFO | cycles without xrun | C++ | studios
prepare_ardour() { need ardour7-new_session jackd ps; }
run_ardour() { REALTIME=--realtime studio ardour:Master "$ardour" "$@"; }

#: ardour-ordinary | Ardour, headless, on JACK without real-time priorities | cycles without xrun | C++ | studios
prepare_ardour-ordinary() { need ardour7-new_session jackd ps; }
run_ardour-ordinary() { studio ardour:Master "$ardour" "$@"; }
