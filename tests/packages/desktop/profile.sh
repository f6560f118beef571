# shellcheck shell=bash
# What alice's shell does when she logs in on the console of the fresh Debian: it starts weston, plays a film in it beside JACK
# with two clients, alone and beside 8 hogs. The first time it then installs the package and logs out, as a person would; the
# second time it switches the machine off.

say() { echo "onbeat-desktop: $*"; }

film=(mpv --no-config --ao=null --vo=wlshm --really-quiet --loop=inf film.mkv)

# The times at which weston says that it has shown a frame of the film, in ms.
shown() {
    sed -n 's/.* wp_presentation_feedback[@#][0-9]*\.presented(0, \([0-9]*\), \([0-9]*\),.*/\1 \2/p' /tmp/film |
        awk '{ printf "%.3f\n", $1 * 1e3 + $2 / 1e6 }'
}

# Twelve seconds of the film and of JACK, beside 8 hogs of the same session if told to.
play() { # NAME [hogs]
    if [ "${2-}" = hogs ]; then stress-ng --quiet --cpu 8 & fi
    sleep 1
    : >/tmp/jack
    jackd --realtime -d dummy -r 48000 -p 256 >>/tmp/jack 2>&1 &
    jack_wait -w -t 30 >/dev/null
    jack_simple_client a >/dev/null 2>&1 &
    jack_simple_client b >/dev/null 2>&1 &
    sleep 2
    grep -ac XRun /tmp/jack >/tmp/before
    WAYLAND_DEBUG=client timeout -s INT 12 "${film[@]}" >/tmp/film 2>&1 &
    sleep 6
    ps -eLo cls=,rtprio=,comm= | awk '$1 != "TS" && /jack|weston|mpv/ { print $3, $1, $2 }' | sort | uniq -c |
        awk '{ printf "%s%d %s %s %s", NR == 1 ? "" : ", ", $1, $2, $3, $4 }' >/tmp/priorities
    sleep 6
    say "$1: film $(shown | sort -n | awk '
        NR > 1 { print $1 - last } { last = $1 }' | sort -n | awk '
        { of[NR] = $1 } END { printf "%d frames, p99 %.0f ms, longest %.0f ms", NR + 1, of[int(0.99 * NR + 0.5)], of[NR] }')," \
        "JACK $(($(grep -ac XRun /tmp/jack) - $(cat /tmp/before))) xruns; $(cat /tmp/priorities)"
    pkill -u alice 'stress-ng|jack'
    wait 2>/dev/null
}

say "kernel $(uname -r), Debian $(cat /etc/debian_version), onbeat $(dpkg-query -W -f='${Version}' onbeat 2>/dev/null || echo none)"
setsid weston --backend=headless --renderer=pixman --width=1280 --height=720 --socket=wayland-7 >/tmp/weston 2>&1 &
disown
export WAYLAND_DISPLAY=wayland-7 JACK_NO_AUDIO_RESERVATION=1
until [ -e "$XDG_RUNTIME_DIR/wayland-7" ]; do sleep 0.1; done
# While the guest waits for its disk, its clock goes on and the host's time does not count: all is read before.
timeout -s INT 3 "${film[@]}"
stress-ng --quiet --cpu 1 --timeout 1
play idle
play hogs hogs
pkill -u alice weston
if [ -e ~/installed ]; then
    journalctl --unit=onbeat --no-pager --quiet -o short-monotonic | grep -v refused | cut -c 1-140 | tail -n 100
    say ended
    sudo systemctl poweroff
fi
# shellcheck disable=SC2024 # the file is hers
sudo apt-get install -y ~/onbeat_*.deb >~/installed 2>&1 || {
    cat ~/installed
    say "the package cannot be installed"
    sudo systemctl poweroff
}
exit
