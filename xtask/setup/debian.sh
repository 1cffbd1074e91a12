#!/bin/sh
# Installs the Debian 12 packages that consort, its build and its tests need.
#
# Run as root. Says nothing and changes nothing when everything is installed already. Debian's JACK
# programs are clients that the tests run, unmodified, against consort; jackd2 itself is only ever
# started as the rival in a benchmark, and asked for its D-Bus interfaces; its headers are only ever
# compared with ours, never built against.
set -eu

# Build: the C compiler for header and ABI tests, ALSA's headers.
build="gcc g++ libc6-dev binutils pkg-config libasound2-dev"
# Run: loaded by who plays or records a sound file.
run="libsndfile1"
# Run: loaded by modules that remove echo or have a plug-in, and plug-ins for them.
processing="libspeexdsp1 ladspa-sdk"
# The demonstration plays one of its recordings; aplay and arecord are the far side of a loopback
# card.
recordings="alsa-utils"
# Compared with our own: JACK's headers and the library behind them; linear time code.
reference="libjack-jackd2-dev libjack-jackd2-0 jackd2 libltc-dev"
# Debian 12 has no jack-example-tools package: its jackd2 carries jack_lsp, jack_metro and the rest.
clients="zita-njbridge jack-capture meterbridge jackmeter ecasound ffmpeg sox aj-snapshot hydrogen
    fluidsynth timgm6mb-soundfont jack-midi-clock
    gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good
    python3 python3-venv python3-pip python3-cffi python3-jack-client python3-numpy"
# Programs of PulseAudio, beside those below that are measured; and its library's headers, for the
# program that compares answers.
pulse="mpv pulsemixer pamixer libsox-fmt-pulse libpulse-dev mplayer vlc-bin vlc-plugin-base
    libsdl1.2debian openal-info libasound2-plugins espeak-ng speech-dispatcher
    speech-dispatcher-espeak-ng cava pavucontrol python3-pulsectl"
# Programs of a desktop: a call with its server and keys for it, a recorder of what is seen and
# heard, an editor.
desktop="mumble mumble-server openssl obs-studio audacity"
# QjackCtl draws on an X server; the X and SDL libraries of meterbridge need one to start.
display="qjackctl xvfb xauth"
# A session bus, and tools that speak on it: gdbus, busctl, and what jack_control needs.
bus="dbus-daemon libglib2.0-bin systemd python3-dbus python3-gi"
# Draw the profiling log that is written as JACK2 writes it, and play a terminal.
drawing="gnuplot-nox tmux"

# Makes networks for tests that send to groups, and tells machines in them of each other.
network="iproute2 avahi-daemon pulseaudio-module-zeroconf"

# Counts the instructions of a cycle, and what the page cache has of a file.
counting="valgrind util-linux-extra"
# Shows what programs ask of the kernel.
tracing="strace"

# Shows the server's page, driven by its own driver; plays and records by itself.
browser="chromium chromium-driver firefox-esr"

# The tests on sound cards run under a kernel that has some, in a virtual machine: tools/vm-run.
machine="qemu-system-x86 busybox-static kmod xz-utils udev"

# Builds the library for 32 bits, and starts its programs.
narrow="gcc-i686-linux-gnu libc6-dev-i386-cross libc6-i386 lib32gcc-s1"

# Measured in comparison with ours, each in a runtime directory of its own, and the load for them.
measured="pulseaudio pulseaudio-utils pipewire pipewire-bin pipewire-pulse pipewire-jack wireplumber dbus-daemon
    libportaudio2 libsdl2-2.0-0 stress-ng"

# Passes video through PipeWire, beside a server of ours; would have it take headsets.
video="gstreamer1.0-pipewire libspa-0.2-bluetooth"
# Makes applications in sandboxes, and runs them.
sandboxes="flatpak"

# Build packages, judge them, and install them in a Debian that boots in a directory.
packaging="debhelper dpkg-dev lintian mmdebstrap systemd-container"

packages="$build $run $processing $recordings $reference $clients $pulse $desktop $display $bus $drawing $network $counting $tracing $browser $machine $measured $video $sandboxes $narrow $packaging"

fail() {
    echo "setup/debian.sh: $1" >&2
    exit 1
}

command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
    fail "apt-get and dpkg-query are missing: this script is for Debian 12"

missing=
for package in $packages; do
    status=$(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) || status=absent
    [ "$status" = installed ] || missing="$missing $package"
done
# The standard library for 32 bits, and that for aarch64, where rustup is what has installed Rust.
for target in i686-unknown-linux-gnu aarch64-unknown-linux-gnu; do
    ! command -v rustup >/dev/null || rustup target add $target >/dev/null 2>&1 ||
        echo "setup/debian.sh: without the target $target, something is not run" >&2
done
vm_run="$(dirname "$0")/../../tools/vm-run"
if [ -z "$missing" ]; then
    # The virtual machine's kernel; nothing to do if it is there. Needs root, as the machine does.
    [ "$(id -u)" != 0 ] || "$vm_run" --setup || fail "tools/vm-run --setup failed"
    exit 0
fi

[ "$(id -u)" = 0 ] || fail "must be run as root to install:$missing"

export DEBIAN_FRONTEND=noninteractive
# Installing jackd2 asks whether its group may use real-time scheduling. The tests do not depend on
# it.
command -v debconf-set-selections >/dev/null &&
    echo "jackd2 jackd/tweak_rt_limits boolean false" | debconf-set-selections

log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Debian starts mumble-server when it is installed, and at each boot. The tests start servers of
# their own, so this machine need not listen for calls.
calls=
case "$missing " in *" mumble-server "*) calls=yes ;; esac
policy=/usr/sbin/policy-rc.d
if [ -n "$calls" ] && [ ! -e "$policy" ]; then
    trap 'rm -f "$log" "$policy"' EXIT
    printf '#!/bin/sh\n[ "$1" != mumble-server ] || exit 101\n' >"$policy"
    chmod 755 "$policy"
fi
apt-get update >"$log" 2>&1 || { cat "$log" >&2; fail "apt-get update failed"; }
# The package list is split into words on purpose.
# shellcheck disable=SC2086
apt-get install --no-install-recommends --yes $missing >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "apt-get could not install:$missing"; }
[ -z "$calls" ] || update-rc.d mumble-server disable >"$log" 2>&1 ||
    { cat "$log" >&2; fail "update-rc.d could not disable mumble-server"; }
"$vm_run" --setup >"$log" 2>&1 ||
    { tail -n 20 "$log" >&2; fail "tools/vm-run --setup failed"; }
