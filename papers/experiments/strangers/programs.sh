#!/usr/bin/env bash
# Runs one program: programs.sh NAME prepare, once, and programs.sh NAME run [PREFIX...], for each cell.
#
# Of a program there are a line `#: NAME | title | what is counted | runtime [| held back] [| SET]...`, here or in sets/SET.sh, prepare_NAME,
# which says what it needs and builds it, and run_NAME, which starts it by "$@" and prints `count N`, `p99_ms X` and perhaps `dsp X`, `note ...`.
# They find SECONDS_TO_RUN, CACHE (kept), WORK (empty, of this cell), DISPLAY, FILM and FILM720.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
programs=$here/programs
# Debian's python3 has Debian's modules; another one may come first in PATH.
PATH=$PATH:/usr/games:/usr/sbin:/usr/lib/go/bin:/usr/local/go/bin:$HOME/.cargo/bin
python=/usr/bin/python3
: "${SECONDS_TO_RUN:=3}" "${CACHE:?}" "${WORK:?}"
export FILM=$CACHE/film.mkv FILM720=$CACHE/film720.mkv

# Ends with what there is to install.
need() { # COMMAND...
    local command
    for command; do
        command -v "$command" >/dev/null || { echo "skipped: no $command here"; exit 77; }
    done
}

# Builds once: what the rest of the command writes at CACHE/NAME.
build() { # NAME COMMAND...
    local made=$CACHE/$1 log=$WORK/build.log
    shift
    [ -e "$made" ] || "$@" >"$log" 2>&1 || { echo "failed: cannot build: $(tail -n 1 "$log")"; exit 1; }
}

compile() { # NAME [FLAG...]
    build "$1" gcc -O2 -D_GNU_SOURCE -pthread -I "$here" -o "$CACHE/$1" "$programs/$1.c" -lm "${@:2}"
}

# An instrument goes before everything else.
first() {
    chrt -f 2 "$@"
}

# Count and percentile of the times, in ms, that come in; of --stamp REGEX, of the lines' arrival.
figures() { # PERIOD_MS [--stamp REGEX]
    first "$python" "$here/figures.py" "$@"
}

# Of the times that a program prints.
timed() { # PERIOD_MS COMMAND...
    local period=$1
    shift
    "$@" >"$WORK/times" 2>"$WORK/said" </dev/null
    figures "$period" <"$WORK/times"
}

# When lines that match come out of the program. With the last of them the program is told to end.
stamped() { # PERIOD_MS REGEX COMMAND...
    local period=$1 regex=$2
    shift 2
    mkfifo "$WORK/lines"
    "$@" >"$WORK/lines" 2>&1 </dev/null &
    first timeout 20 "$python" "$here/figures.py" "$period" --stamp "$regex" <"$WORK/lines"
    finish $!
}

# The CPU time of the hogs, in ms, from the fifth second of a program on.
left_to_hogs() { # COMMAND...
    local before
    [ -n "${HOGS-}" ] || { echo "skipped: beside hogs only"; exit 77; }
    "$@" >"$WORK/said" 2>&1 </dev/null &
    sleep 5
    before=$(hogs_ms)
    sleep "$SECONDS_TO_RUN"
    echo "count $(($(hogs_ms) - before))"
    finish $!
}
hogs_ms() {
    local pid
    for pid in $HOGS; do cat "/proc/$pid/schedstat"; done | awk '{ sum += $1 } END { printf "%d", sum / 1e6 }'
}

# The frames of so many pixels that a program shows on the display, without the first SKIP.
shown() { # PERIOD_MS PIXELS COMMAND...
    local period=$1 pixels=$2 watch
    shift 2
    first "$CACHE/frames" "$pixels" "$SECONDS_TO_RUN" "${SKIP:-0}" >"$WORK/frames" &
    watch=$!
    sleep 0.1
    "$@" >"$WORK/said" 2>&1 </dev/null &
    wait $watch
    finish $!
    figures "$period" <"$WORK/frames"
}

# Ends a process of the background within a second.
finish() { # PID
    local i
    kill "$1" 2>/dev/null
    for ((i = 0; i < 20; i++)); do
        kill -0 "$1" 2>/dev/null || break
        sleep 0.05
    done
    kill -KILL "$1" 2>/dev/null
    wait "$1" 2>/dev/null
}

# The times that a page tells at its end. The browser finds nobody to talk to.
page() { # PERIOD_MS PAGE BROWSER PREFIX...
    local period=$1 url=file://$programs/$2#$SECONDS_TO_RUN browser=$3 i
    shift 3
    $browser "$url" "$@" >"$WORK/said" 2>&1 </dev/null &
    for ((i = 0; i < 300; i++)); do
        grep -q 'TIMES .* END' "$WORK/said" && break
        sleep 0.1
    done
    finish $!
    grep -o 'TIMES .* END' "$WORK/said" | head -n 1 | tr -d TIMESND | figures "$period"
}

chromium_on() { # PAGE PREFIX...
    local url=$1
    shift
    exec "$@" chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update \
        --disable-sync --proxy-server=127.0.0.1:9 --autoplay-policy=no-user-gesture-required --enable-logging=stderr --user-data-dir="$WORK/profile" "$url"
}

# A client of a Wayland compositor tells when its frames are shown, or, without wp_presentation, when the compositor asks for the next one.
WAYLAND_CLIENT="WAYLAND_DEBUG=client timeout -s INT $((SECONDS_TO_RUN + 1)) weston-presentation-shm -f >$WORK/client 2>&1"
wayland_frames() { # PERIOD_MS
    sed -n 's/.* wp_presentation_feedback@[0-9]*.presented(0, \([0-9]*\), \([0-9]*\),.*/\1 \2/p' "$WORK/client" | awk '{ printf "%.3f\n", $1 * 1e3 + $2 / 1e6 }' >"$WORK/shown"
    [ -s "$WORK/shown" ] || sed -n 's/^\[ *\([0-9.]*\)\] wl_callback@[0-9]*.done.*/\1/p' "$WORK/client" >"$WORK/shown"
    figures "$1" <"$WORK/shown"
}

# A server of its own, and clients; without real-time priority, if REALTIME does not say otherwise.
on_jack() { # SHELL_COMMAND PREFIX...
    local command=$1
    shift
    JACK_NO_AUDIO_RESERVATION=1 JACK_DEFAULT_SERVER=strangers$$ "$@" sh -c "jackd ${REALTIME:---no-realtime} -n strangers$$ -d dummy -r 48000 -p 256 >$WORK/jackd 2>&1 &
        $command; kill \$!; wait \$!"
}

#: mplayer | mplayer, 1080p25 | frames | C
prepare_mplayer() { need mplayer; }
run_mplayer() { shown 40 2073600 "$@" mplayer -really-quiet -nosound -vo x11 -loop 0 "$FILM"; }

#: mpv | mpv --vo=x11, 1080p25 | frames | C
prepare_mpv() { need mpv; }
run_mpv() { shown 40 2073600 "$@" mpv --no-config --ao=null --really-quiet --loop=inf --vo=x11 "$FILM"; }

#: mpv-gpu | mpv --vo=gpu on llvmpipe, 720p25 | frames | C, OpenGL
prepare_mpv-gpu() { need mpv; }
run_mpv-gpu() {
    shown 40 921600 "$@" mpv --no-config --ao=null --really-quiet --loop=inf --vo=gpu --gpu-sw --gpu-context=x11egl \
        --scale=bilinear --cscale=bilinear --dscale=bilinear --dither=no "$FILM720"
}

#: gst | gst-launch-1.0, 1080p25 | frames | C, GLib
prepare_gst() { need gst-launch-1.0; }
run_gst() {
    shown 40 2073600 "$@" gst-launch-1.0 -q filesrc location="$FILM" ! matroskademux ! h264parse ! avdec_h264 ! videoconvert ! ximagesink
}

#: ffplay | ffplay, 720p25 | frames | C, SDL
prepare_ffplay() { need ffplay; }
run_ffplay() { SDL_RENDER_DRIVER=software shown 40 921600 "$@" ffplay -loglevel quiet -an -loop 0 "$FILM720"; }

#: vlc | VLC, 720p25 | frames | C, C++ | held back
prepare_vlc() { need cvlc; }
# It will not run as root, and another user may not read the films.
run_vlc() {
    chmod 777 "$WORK"
    cp "$FILM720" "$WORK/film.mkv"
    HOME=$WORK shown 40 921600 "$@" setpriv --reuid=nobody --regid=nogroup --clear-groups cvlc -q --no-audio --vout xcb_x11 --loop --no-video-title-show "$WORK/film.mkv"
}

#: grab | ffmpeg grabs the display and encodes, beside g++ | frames at 30 Hz | C, x264
prepare_grab() { need ffmpeg g++ ffplay; }
run_grab() {
    SDL_RENDER_DRIVER=software first ffplay -loglevel quiet -an -loop 0 "$FILM720" >/dev/null 2>&1 </dev/null &
    while :; do echo '#include <regex>
        std::regex r("(a|b)*");' | g++ -O2 -x c++ -S -o /dev/null -; done >/dev/null 2>&1 &
    stamped 33.333 '^0,' "$@" ffmpeg -nostdin -loglevel error -f x11grab -framerate 30 -video_size 1280x720 -i "$DISPLAY" -c:v libx264 -preset ultrafast \
        -tune zerolatency -flush_packets 1 -f framecrc -
    mapfile -t jobs < <(jobs -p)
    kill "${jobs[@]}"
}

#: chromium | Chromium, animation frames of a canvas | frames | C++, V8
prepare_chromium() { need chromium; }
run_chromium() { page 16.667 animation.html chromium_on "$@"; }

#: chromium-audio | Chromium, an AudioWorklet | buffers | C++, V8
prepare_chromium-audio() { need chromium; }
run_chromium-audio() { page 10 audio.html chromium_on "$@"; }

#: firefox | Firefox ESR, animation frames of a canvas | frames | C++, Rust, SpiderMonkey
prepare_firefox() { need firefox-esr; }
firefox_on() { # PAGE PREFIX...
    local url=$1 pref
    shift
    mkdir "$WORK/profile"
    for pref in 'browser.dom.window.dump.enabled", true' 'network.proxy.type", 1' 'network.proxy.http", "127.0.0.1"' \
        'network.proxy.http_port", 9' 'network.proxy.ssl", "127.0.0.1"' 'network.proxy.ssl_port", 9' 'app.update.enabled", false' \
        'datareporting.policy.dataSubmissionEnabled", false' 'toolkit.telemetry.enabled", false' 'browser.shell.checkDefaultBrowser", false' \
        'browser.aboutwelcome.enabled", false' 'datareporting.policy.dataSubmissionPolicyBypassNotification", true'; do
        echo "user_pref(\"$pref);"
    done >"$WORK/profile/user.js"
    HOME=$WORK exec "$@" firefox-esr --headless --no-remote --profile "$WORK/profile" "$url"
}
run_firefox() { page 16.667 animation.html firefox_on "$@"; }

#: browser-like | A browser's threads: compositor, two renderers with pools | frames in time | C, a pool
prepare_browser-like() { compile browser; }
run_browser-like() { "$@" "$CACHE/browser"; }

#: pyqt | PyQt5, an animation of 60 Hz | frames | CPython, Qt
prepare_pyqt() { need "$python"; "$python" -c 'import PyQt5.QtWidgets' 2>/dev/null || { echo "skipped: no PyQt5 here"; exit 77; }; }
run_pyqt() { QT_QPA_PLATFORM=xcb shown 16 400000 "$@" "$python" "$programs/qt.py"; }

#: gtk | GTK 3, an animation by its frame clock | frames | CPython, GTK
prepare_gtk() { need "$python"; "$python" -c 'import gi; gi.require_version("Gtk", "3.0")' 2>/dev/null || { echo "skipped: no GTK for Python here"; exit 77; }; }
run_gtk() { GDK_BACKEND=x11 NO_AT_BRIDGE=1 timed 16.667 "$@" "$python" "$programs/gtk.py"; }

#: pygame | pygame, 400 sprites at 60 Hz | frames | CPython, SDL
prepare_pygame() { need "$python"; "$python" -c 'import pygame' >/dev/null 2>&1 || { echo "skipped: no pygame here"; exit 77; }; }
run_pygame() { SDL_VIDEODRIVER=x11 SDL_AUDIODRIVER=dummy PYGAME_HIDE_SUPPORT_PROMPT=1 timed 16.667 "$@" "$python" "$programs/game.py"; }

#: love | LÖVE, a game's loop at 60 Hz on llvmpipe | frames | LuaJIT, SDL, OpenGL
prepare_love() { need love; }
run_love() { HOME=$WORK SDL_AUDIODRIVER=dummy ALSOFT_DRIVERS=null timed 16.667 "$@" love "$programs/love"; }

#: godot | Godot 3, a 2D scene at 60 Hz on llvmpipe | frames | C++, GDScript, OpenGL | held back
prepare_godot() { need godot3-runner; }
run_godot() { HOME=$WORK timed 16.667 "$@" godot3-runner --path "$programs/godot" --audio-driver Dummy --video-driver GLES2 --resolution 320x240; }

#: neverball | Neverball, its title on llvmpipe | frames | C, SDL, OpenGL
prepare_neverball() { need neverball; }
run_neverball() {
    mkdir -p "$WORK/.neverball"
    printf '%s\n' 'fullscreen 0' 'width 320' 'height 240' 'fps 0' 'vsync 0' 'audio_buff 2048' 'reflection 0' 'shadow 0' >"$WORK/.neverball/neverballrc"
    HOME=$WORK SDL_AUDIODRIVER=dummy SKIP=3 shown 16.667 76800 "$@" neverball
}

#: doom | Chocolate Doom, a demo at 35 Hz | frames | C, SDL
prepare_doom() { need chocolate-doom; }
run_doom() {
    SDL_RENDER_DRIVER=software HOME=$WORK shown 28.571 300000 "$@" chocolate-doom -iwad /usr/share/games/doom/freedoom1.wad -nosound -window \
        -geometry 640x480 -playdemo demo1 -nograb -config "$WORK/default.cfg" -extraconfig "$WORK/extra.cfg"
}

#: dosbox | DOSBox, a program that waits for the display's retrace | frames | x86 emulated, SDL | held back
prepare_dosbox() { need dosbox; printf '\xb8\x13\x00\xcd\x10\xb8\x00\xa0\x8e\xc0\xba\xda\x03\xec\xa8\x08\x75\xfb\xec\xa8\x08\x74\xfb\xfe\xc3\x88\xd8\x31\xff\xb9\x00\xfa\xf3\xaa\xeb\xe9' >"$CACHE/retrace.com"; }
# Mode 13h; wait for the retrace at port 3DAh to end and begin; fill the screen with the next colour; again.
run_dosbox() {
    printf '%s\n' '[sdl]' 'output=surface' '[render]' 'scaler=none' '[cpu]' 'cycles=8000' '[mixer]' 'nosound=true' '[autoexec]' "mount c $CACHE" 'c:\\retrace.com' >"$WORK/conf"
    HOME=$WORK SDL_VIDEODRIVER=x11 SKIP=45 shown 14.268 64000 "$@" dosbox -conf "$WORK/conf"
}

#: weston | weston, headless, with weston-presentation-shm | frames | C, Wayland
prepare_weston() { need weston weston-presentation-shm; }
run_weston() {
    "$@" sh -c "weston --backend=headless-backend.so --width=800 --height=600 --socket=strangers & export WAYLAND_DISPLAY=strangers
        until [ -S $XDG_RUNTIME_DIR/strangers ]; do sleep 0.05; done; $WAYLAND_CLIENT; kill \$!" >"$WORK/said" 2>&1
    wayland_frames 25
}

#: sway | sway (wlroots), headless, with weston-presentation-shm | frames | C, Wayland | compositors
prepare_sway() { need sway weston-presentation-shm; }
# It will not run as root.
run_sway() {
    echo "exec '$WAYLAND_CLIENT; swaymsg exit'" >"$WORK/config"
    chown nobody "$WORK"
    chmod 700 "$WORK"
    XDG_RUNTIME_DIR=$WORK WLR_BACKENDS=headless WLR_RENDERER=pixman WLR_LIBINPUT_NO_DEVICES=1 "$@" \
        setpriv --reuid=nobody --regid=nogroup --clear-groups sway -c "$WORK/config" >"$WORK/said" 2>&1
    wayland_frames 16.667
}

#: jack | JACK, six clients in a chain, 5.3 ms | cycles of the last | C | studios
prepare_jack() { need jackd; compile jack -ljack; }
run_jack() {
    timed 5.333 on_jack "$CACHE/jack 6 system:playback_1" "$@"
}

#: pipewire | PipeWire without rights to real-time priority, six clients in a chain, 5.3 ms | cycles of the last | C | studios
prepare_pipewire() { need pipewire pw-jack; compile jack -ljack; }
run_pipewire() {
    cat >"$WORK/pipewire.conf" <<'CONF'
context.properties = { core.daemon = true core.name = pipewire-0 support.dbus = false default.clock.rate = 48000 default.clock.quantum = 256
  default.clock.min-quantum = 256 default.clock.max-quantum = 256 }
context.spa-libs = { support.* = support/libspa-support }
context.modules = [ { name = libpipewire-module-protocol-native } { name = libpipewire-module-metadata } { name = libpipewire-module-spa-node-factory }
  { name = libpipewire-module-client-node } { name = libpipewire-module-access args = { } } { name = libpipewire-module-link-factory } ]
context.objects = [ { factory = spa-node-factory args = { factory.name = support.node.driver node.name = Dummy-Driver node.group = pipewire.dummy
  priority.driver = 20000 } } ]
CONF
    cp "$CACHE/jack" "$WORK"
    chown nobody "$WORK"
    PIPEWIRE_RUNTIME_DIR=$WORK timed 5.333 "$@" setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c "pipewire -c $WORK/pipewire.conf &
        until [ -S $WORK/pipewire-0 ]; do sleep 0.05; done; pw-jack $WORK/jack 6; kill \$!"
}

#: fluidsynth | FluidSynth on JACK, 5.3 ms, twenty notes a second | cycles without xrun | C, GLib | held back | studios
prepare_fluidsynth() { need fluidsynth jackd; }
notes() {
    local i
    for ((i = 0; i < SECONDS_TO_RUN * 20; i++)); do
        echo "noteon $((i % 8)) $((40 + i * 7 % 40)) 100"
        sleep 0.05
    done
}
run_fluidsynth() {
    notes | on_jack "jack_wait -s \$JACK_DEFAULT_SERVER -w -t 10 >/dev/null
        fluidsynth -q -a jack -j -o audio.jack.server=\$JACK_DEFAULT_SERVER -o synth.polyphony=512 /usr/share/sounds/sf2/TimGM6mb.sf2 >/dev/null" "$@" 2>"$WORK/said"
    grep -q 'caught signal' "$WORK/jackd" || exit 1
    echo "count $((SECONDS_TO_RUN * 48000 / 256 - $(grep -c 'XRun\|not finished' "$WORK/jackd")))"
}

#: go | Go, a 10 ms ticker beside 21 goroutines | ticks | Go
prepare_go() { need go; build go env GO111MODULE=off GOFLAGS= GOCACHE="$WORK" go build -o "$CACHE/go" "$programs/go.go"; }
run_go() { timed 10 "$@" "$CACHE/go"; }

#: java | Java, a scheduled executor at 50 Hz that leaves garbage | ticks | JVM with its collector
prepare_java() { need java javac; build Beat.class javac -d "$CACHE" "$programs/Beat.java"; }
run_java() { timed 20 "$@" java -Xmx64m -cp "$CACHE" Beat; }

#: node | Node, setInterval of 10 ms | ticks | V8, libuv
prepare_node() { need node; }
run_node() { timed 10 "$@" node "$programs/node.js"; }

#: mono | Mono, a 10 ms loop beside its thread pool | ticks | .NET
prepare_mono() { need mono mcs; build beat.exe mcs -out:"$CACHE/beat.exe" "$programs/beat.cs"; }
run_mono() { timed 10 "$@" mono "$CACHE/beat.exe"; }

#: erlang | Erlang, a 10 ms timer beside a hundred processes | ticks | BEAM
prepare_erlang() { need erlc erl; build beat.beam erlc -o "$CACHE" "$programs/beat.erl"; }
run_erlang() { timed 10 "$@" erl -noshell -pa "$CACHE" -s beat main; }

#: ruby | Ruby, a 20 ms loop beside ten threads | ticks | CRuby | held back
prepare_ruby() { need ruby; }
run_ruby() { timed 20 "$@" ruby "$programs/beat.rb"; }

#: python-asyncio | Python, asyncio with a 10 ms loop and 50 others | ticks | CPython
prepare_python-asyncio() { need "$python"; }
run_python-asyncio() { timed 10 "$@" "$python" "$programs/python_asyncio.py"; }

#: python-threads | Python, 35 threads that send cyclically | messages up to 5 ms late | CPython, one lock for all
prepare_python-threads() { need "$python"; }
run_python-threads() { "$@" "$python" "$programs/python_threads.py"; }

#: rust-pool | Rust, 60 Hz with a pool of four that yields | frames | Rust, spin locks
prepare_rust-pool() { need rustc; build rust-pool rustc -O --edition 2021 -o "$CACHE/rust-pool" "$programs/pool.rs"; }
run_rust-pool() { timed 16.667 "$@" "$CACHE/rust-pool"; }

#: wine | Wine, a Windows program with a 10 ms timer | ticks | Win32
prepare_wine() {
    need wine x86_64-w64-mingw32-gcc
    build beat-win.exe x86_64-w64-mingw32-gcc -O2 -o "$CACHE/beat-win.exe" "$programs/win.c" -lwinmm
    [ -d "$CACHE/wine" ] || WINEPREFIX=$CACHE/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml=' wineboot -i >"$WORK/wineboot" 2>&1
}
run_wine() { WINEPREFIX=$CACHE/wine WINEDEBUG=-all timed 10 "$@" wine "$CACHE/beat-win.exe"; }

#: yield | A game's loop that yields until its next frame, 60 Hz | frames | C, sched_yield
prepare_yield() { compile yield; }
run_yield() { timed 16.667 "$@" "$CACHE/yield"; }

#: realtime | A program that gives its 5 ms thread SCHED_FIFO itself, beside its own 60 Hz thread | cycles of 5 ms | C, RT
prepare_realtime() { compile realtime; }
run_realtime() { timed 5 "$@" "$CACHE/realtime"; }

#: cyclictest | cyclictest, two threads of 4 ms | cycles up to 4 ms late | C
prepare_cyclictest() { need cyclictest; }
run_cyclictest() {
    "$@" cyclictest --policy=other -q -t 2 -i 4000 -d 0 -l $((SECONDS_TO_RUN * 250)) -h 20000 |
        awk '/^[0-9]/ { n[$1 + 0] = $2 + $3; all += $2 + $3; if ($1 <= 4000) in_time += $2 + $3 }
            /Overflows/ { all += $4 + $5 }
            END { for (i = 0; i < 20000 && sum < 0.99 * all; i++) sum += n[i]; printf "count %d\np99_ms %.1f\n", in_time, 4 + i / 1000 }'
}

#: ros | A robot's path: camera, rectify, detect, control, and a 200 Hz IMU | messages in time, p99 of a frame | C, sockets | robots
prepare_ros() { compile ros; }
run_ros() { "$@" "$CACHE/ros"; }

#: etcd | etcd, three members, 20 puts a second | puts within 50 ms, p99 of a put | Go
prepare_etcd() { need etcd $python; }
run_etcd() { first "$python" "$programs/etcd.py" "$@"; }

#: container | A container that moves itself into a group with cpu.max 30% | jobs of 20 ms in time | C, cgroup
prepare_container() { compile control; }
run_container() {
    local group=/sys/fs/cgroup/strangers$$
    if [ -e /sys/fs/cgroup/cpu/cpu.shares ]; then
        group=/sys/fs/cgroup/cpu/strangers$$
        mkdir "$group" && echo 100000 >"$group/cpu.cfs_period_us" && echo 30000 >"$group/cpu.cfs_quota_us"
    else
        echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
        mkdir "$group" && echo '30000 100000' >"$group/cpu.max"
    fi || { echo "skipped: no control group can be made here"; exit 77; }
    "$@" sh -c "echo \$\$ >$group/cgroup.procs || { echo count 0; echo note it cannot enter its group; exit; }
        exec $CACHE/control" 2>"$WORK/said"
    sleep 0.1
    rmdir "$group"
}

#: qemu | QEMU (TCG), a guest with a timer of 100 Hz | ticks | C, emulation
prepare_qemu() {
    need qemu-system-x86_64 as
    build tick.o as --32 -o "$CACHE/tick.o" "$programs/tick.s"
    build tick.img ld -m elf_i386 -Ttext 0x7c00 --oformat binary -o "$CACHE/tick.img" "$CACHE/tick.o"
}
run_qemu() { stamped 10 . "$@" qemu-system-x86_64 -accel tcg -nodefaults -display none -m 16 -drive format=raw,file="$CACHE/tick.img",readonly=on,if=floppy -debugcon stdio; }

#: shell | A shell script that starts children ten times a second | rounds | sh
prepare_shell() { need bash ps awk; }
run_shell() {
    cat >"$WORK/monitor.sh" <<'SH'
end=$(($(date +%s%N) + SECONDS_TO_RUN * 1000000000))
while now=$(date +%s%N) && [ "$now" -lt "$end" ]; do
    echo "$((now / 1000000))"
    ps -eo pid,ppid,stat,comm | awk '{ n[$3]++ } END { for (s in n) print s, n[s] }' >/dev/null
    sleep 0.1
done
SH
    timed 100 "$@" bash "$WORK/monitor.sh"
}

#: transcode | A transcode, which has no beat | ms of the hogs beside it, from its fifth second on | C, x264
prepare_transcode() { need ffmpeg; }
run_transcode() { left_to_hogs "$@" ffmpeg -nostdin -stream_loop -1 -i "$FILM" -c:v libx264 -f null -; }

#: gxx | g++, one file after the other | ms of the hogs beside it, from its fifth second on | C++
prepare_gxx() { need g++; }
run_gxx() { left_to_hogs "$@" sh -c "while :; do echo '#include <regex>' | g++ -O2 -x c++ -S -o /dev/null -; done"; }

#: sort | sort, of random lines | ms of the hogs beside it, from its fifth second on | C, threads
prepare_sort() { need sort shuf; }
run_sort() { left_to_hogs "$@" sh -c 'while :; do shuf -i 1-2000000 | sort >/dev/null; done'; }

for file in "$here"/sets/*.sh; do
    # shellcheck source=/dev/null
    . "$file"
done
name=$1 what=$2
shift 2
cd "$WORK" || exit
"${what}_$name" "$@"
