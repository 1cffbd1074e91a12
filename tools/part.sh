#!/bin/sh
# Draws the figures of docs/timing.md from runs on this machine: five clients in sequence and in parallel, on one CPU and
# on two, and the same chain under a compile load, without and with CPUs and interrupts of its own.
#
# tools/timing-figures DIRECTORY [SECONDS]
#
# As root, for real-time priorities and to move interrupts; with two CPUs or more, and with consort and gcc built and
# installed (cargo build -p consort -p consort-jack). Takes half a minute, and says what the machine was doing.
set -eu
[ $# -ge 1 ] || { echo "tools/timing-figures DIRECTORY [SECONDS]" >&2; exit 2; }
mkdir -p "$1"
output=$(cd "$1" && pwd)
seconds=${2:-5}
cd "$(dirname "$0")/.."
built=$(pwd)/${CARGO_TARGET_DIR:-target}/${PROFILE:-debug}
case ${CARGO_TARGET_DIR:-} in /*) built=$CARGO_TARGET_DIR/${PROFILE:-debug} ;; esac
work=$(mktemp -d)
started=
# Only what was started here.
finish() {
    for process in $started; do kill "$process" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' HUP INT TERM
mkdir "$work/lib"
ln -s "$built/libjack.so" "$work/lib/libjack.so.0"
gcc -std=gnu11 -O2 -o "$work/client" tests/victims/culprit.c -Icrates/jack/include -L"$built" -ljack
export XDG_RUNTIME_DIR="$work" HOME="$work" JACK_DEFAULT_SERVER=figures JACK_NO_START_SERVER=1 LD_LIBRARY_PATH="$work/lib"
consort=$built/consort

await() {
    tries=0
    until "$@" >/dev/null 2>&1; do
        tries=$((tries + 1))
        [ "$tries" -lt 300 ] || { echo "tools/timing-figures: never happened: $*" >&2; exit 1; }
        sleep 0.1
    done
}

start() {
    "$@" >>"$work/log" 2>&1 &
    started="$! $started"
}

# figure NAME sequence|parallel OPTIONS…: records five clients and draws them.
figure() {
    name=$1 shape=$2
    shift 2
    start "$consort" run -n figures --quantum 64 --client-timeout 1000 "$@"
    server=${started%% *}
    await "$consort" status
    from=system:capture_1
    clients=
    for client in A B C D E; do
        start "$work/client" client "$client" --from "$from" --load 4
        clients="$clients ${started%% *}"
        await "$consort" ls "$client:out"
        if [ "$shape" = sequence ]; then from=$client:out; fi
    done
    # Until what is usual is known, and clients have their CPUs.
    sleep 2
    "$consort" profile record --seconds "$seconds" --output "$work/$name.rec" >/dev/null
    "$consort" profile plot "$work/$name.rec" --output "$work/$name" ${highest:+--y-max "$highest"}
    cp "$work/$name/6-clients-in-slices.png" "$output/slices-$name.png"
    cp "$work/$name/4-clients-scheduling-latency.png" "$output/scheduling-$name.png"
    echo "$name: load average $(cut -d' ' -f1-3 /proc/loadavg), xruns: $("$consort" status | sed -n 's/^xruns *//p')"
    for process in $clients $server; do kill "$process" 2>/dev/null || true; done
    for process in $clients $server; do wait "$process" 2>/dev/null || true; done
    started=
}

echo "$(nproc) CPUs, $(uname -sr), $seconds s for each figure"
highest=${HIGHEST:-600}
figure parallel-1 parallel --cpus 1

# A compile load: four compilers at a time, on the CPUs that they are let use.
cat >"$work/load.sh" <<'LOAD'
trap exit TERM
while :; do gcc -O2 -c -o "$1/load-$2.o" tests/victims/culprit.c -Icrates/jack/include; done
LOAD
loads=
compile() {
    for number in 1 2 3 4; do
        "$@" sh "$work/load.sh" "$work" "$number" >/dev/null 2>&1 &
        loads="$loads $!"
    done
}
halt() {
    for process in $loads; do kill "$process" 2>/dev/null || true; done
    for process in $loads; do wait "$process" 2>/dev/null || true; done
    loads=
}
trap 'halt; finish' EXIT
halt
# CPU 0 is for the rest of the machine, its interrupts and the compilers.
compile taskset -c 0
figure set sequence --cpus 1 --move-interrupts
halt
