# shellcheck shell=bash
# What alice's shell does when she logs in on the console of the fresh Debian: the first time it plays the film, installs the
# package and logs out, as a person would; the second time it plays the film again, and switches the machine off.

say() { echo "onbeat-desktop: $*"; }

# Plays the film for some seconds, beside 8 hogs of the same session if told to.
play() { # NAME [hogs]
    if [ "${2-}" = hogs ]; then stress-ng --quiet --cpu 8 & fi
    sleep 1
    say "$1 $(python3 ~/frames.py 12 mpv --vo=x11 --really-quiet film.mkv)"
    [ "${2-}" != hogs ] || pkill -u alice stress-ng
    wait 2>/dev/null
}

export DISPLAY=:7
if [ ! -e ~/installed ]; then
    setsid Xvfb :7 -screen 0 1280x720x24 -nolisten tcp >/dev/null 2>&1 &
    disown
    until [ -e /tmp/.X11-unix/X7 ]; do sleep 0.1; done
    # While the guest waits for its disk, its clock goes on and the host's time does not count: all is read before.
    mpv --vo=x11 --really-quiet --frames=25 film.mkv
    stress-ng --quiet --cpu 1 --timeout 1
    python3 ~/frames.py 1 sleep 10 >/dev/null
    say "kernel $(uname -r), Debian $(cat /etc/debian_version)"
    play idle
    play hogs hogs
    # shellcheck disable=SC2024 # the file is hers
    if sudo apt-get install -y ~/onbeat_*.deb >~/installed 2>&1; then
        say "installed $(dpkg-query -W -f='${Version}' onbeat)"
    else
        cat ~/installed
        say "the package cannot be installed"
        sudo systemctl poweroff
    fi
    exit
fi
times=$(systemctl show onbeat --property=InactiveExitTimestampMonotonic,ActiveEnterTimestampMonotonic --value | xargs)
say "the service answers $(((${times#* } - ${times% *}) / 1000)) ms after its start"
play idle-with-onbeat
play hogs-with-onbeat hogs
journalctl --unit=onbeat --no-pager --quiet -o short-monotonic | grep -v refused | cut -c 1-140 | tail -n 100
say ended
sudo systemctl poweroff
