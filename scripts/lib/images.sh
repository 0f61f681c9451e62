# shellcheck shell=sh
# Sourced by the scripts that build the images of the mini environment ahead, from the project's folder.

# Returns whether the engine has all images of the mini environment.
images_are_here() {
    for image in $(awk '$1 == "image:" { print $2 }' compose/mini.yaml | sort -u); do
        docker image inspect "$image" >/dev/null 2>&1 || return 1
    done
}
