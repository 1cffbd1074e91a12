#!/bin/sh
# Installs applications of Flatpak for the user who runs this, from nothing but this machine:
#
#     flatpak.sh DIRECTORY PROGRAM...
#
# org.consort.Player and org.consort.Player-two are given PulseAudio's socket, and org.consort.Mute
# is not. All have the runtime org.consort.Platform: the named programs, and the libraries that they
# are linked with. DIRECTORY is for what is made on the way.
set -eu
# Libraries are those of the system, also where others are to be tested.
unset LD_LIBRARY_PATH

place=$1
shift
platform=org.consort.Platform

# Puts files into the runtime, which is at /usr in a sandbox: what is in /lib and /bin here, too.
put() {
    for file; do
        inside=${file#/usr}
        mkdir -p "$place/runtime/files${inside%/*}"
        cp --dereference "$file" "$place/runtime/files$inside"
    done
}

mkdir -p "$place/runtime/files/etc"
cat >"$place/runtime/metadata" <<END
[Runtime]
name=$platform
runtime=$platform/$(flatpak --default-arch)/1
sdk=$platform/$(flatpak --default-arch)/1
END
for program; do
    file=$(command -v "$program")
    put "$file"
    ldd "$file" | grep -o '/[^ ]*' | while read -r library; do put "$library"; done
done

repository=$place/repository
export_to_repository() {
    flatpak build-export --disable-fsync "$@" >/dev/null
}
install_from_repository() {
    flatpak --user install --noninteractive here "$@" >/dev/null
}

export_to_repository --files=files "$repository" "$place/runtime" 1
flatpak --user remote-add --no-gpg-verify here "$repository"
install_from_repository "$platform//1"
for application in Player Player-two Mute; do
    flatpak build-init "$place/$application" "org.consort.$application" $platform $platform 1
    sockets=--socket=pulseaudio
    [ "$application" != Mute ] || sockets=
    # shellcheck disable=SC2086
    flatpak build-finish "$place/$application" --command=sh $sockets >/dev/null
    export_to_repository "$repository" "$place/$application"
done
install_from_repository org.consort.Player org.consort.Player-two org.consort.Mute
