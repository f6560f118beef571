# shellcheck shell=bash disable=SC2154,SC2034
# Compositors without a display, and their clients. programs.sh says what stands here.

# Both run as another user than root, whom sway wants. The way starts WHO: both, compositor, or client.
seated() { # WHO COMPOSITOR CLIENT PREFIX...
    local who=$1 compositor="$2 >$WORK/said 2>&1" client=$3 user=(setpriv --reuid=nobody --regid=nogroup --clear-groups sh -c)
    shift 3
    case "$who ${1-}" in compositor*/serve.sh | client*/serve.sh) echo "skipped: the service serves both" && exit 77 ;; esac
    client="until WAYLAND_DISPLAY=\$(cd $WORK && ls | grep -x 'wayland-[0-9]'); do sleep 0.05; done; export WAYLAND_DISPLAY
        WAYLAND_DEBUG=client timeout -s INT ${LIMIT:-$((SECONDS_TO_RUN + 1))} $client >$WORK/client 2>&1"
    chown nobody "$WORK"
    chmod 700 "$WORK"
    export XDG_RUNTIME_DIR=$WORK HOME=$WORK WLR_BACKENDS=headless WLR_RENDERER=pixman WLR_LIBINPUT_NO_DEVICES=1
    case $who in
    both) "$@" "${user[@]}" "$compositor & $client; kill \$!" ;;
    compositor)
        "$@" "${user[@]}" "exec $compositor" &
        "${user[@]}" "$client"
        finish $!
        ;;
    client)
        "${user[@]}" "exec $compositor" &
        "$@" "${user[@]}" "$client"
        finish $!
        ;;
    esac
}
weston="weston --backend=headless-backend.so --width=1280 --height=720 --socket=wayland-1"
sway="sway -c /dev/null"
shm="weston-presentation-shm -f"
mpv="mpv --no-config --ao=null --really-quiet --loop=inf --vo=wlshm $FILM720"

#: weston-shm | weston with weston-presentation-shm | frames | C, Wayland | compositors
prepare_weston-shm() { need weston weston-presentation-shm; }
run_weston-shm() { seated both "$weston" "$shm" "$@"; wayland_frames 25; }

#: weston-served | weston alone is served, with weston-presentation-shm | frames | C, Wayland | compositors
prepare_weston-served() { need weston weston-presentation-shm; }
run_weston-served() { seated compositor "$weston" "$shm" "$@"; wayland_frames 25; }

#: weston-client | weston with weston-presentation-shm, which alone is served | frames | C, Wayland | compositors
prepare_weston-client() { need weston weston-presentation-shm; }
run_weston-client() { seated client "$weston" "$shm" "$@"; wayland_frames 25; }

#: weston-mpv | weston with mpv, 720p25 | frames | C, Wayland | compositors
prepare_weston-mpv() { need weston mpv; }
run_weston-mpv() { seated both "$weston" "$mpv" "$@"; wayland_frames 40; }

#: sway-mpv | sway with mpv, 720p25 | frames | C, Wayland | compositors
prepare_sway-mpv() { need sway mpv; }
run_sway-mpv() { seated both "$sway" "$mpv" "$@"; wayland_frames 40; }

#: sway-mpv-served | sway alone is served, with mpv | frames | C, Wayland | compositors
prepare_sway-mpv-served() { need sway mpv; }
run_sway-mpv-served() { seated compositor "$sway" "$mpv" "$@"; wayland_frames 40; }

#: sway-mpv-client | sway with mpv, which alone is served | frames | C, Wayland | compositors
prepare_sway-mpv-client() { need sway mpv; }
run_sway-mpv-client() { seated client "$sway" "$mpv" "$@"; wayland_frames 40; }

#: cage | cage with weston-presentation-shm | frames | C, Wayland | compositors
prepare_cage() { need cage weston-presentation-shm; }
run_cage() { seated both "cage -- sleep 60" "$shm" "$@"; wayland_frames 16.667; }

#: sway-chromium | sway with Chromium, animation frames of a canvas | frames | C, C++, V8 | compositors
prepare_sway-chromium() { need sway chromium; }
run_sway-chromium() {
    local i
    LIMIT=20 seated both "$sway" "chromium --ozone-platform=wayland --no-sandbox --disable-gpu --no-first-run --disable-background-networking \
        --disable-component-update --disable-sync --proxy-server=127.0.0.1:9 --enable-logging=stderr --user-data-dir=$WORK/profile \
        file://$programs/animation.html#$SECONDS_TO_RUN" "$@" &
    for ((i = 0; i < 200; i++)); do
        grep -q 'TIMES .* END' "$WORK/client" 2>/dev/null && break
        sleep 0.1
    done
    finish $!
    grep -o 'TIMES .* END' "$WORK/client" | head -n 1 | tr -d TIMESND | figures 16.667
}
