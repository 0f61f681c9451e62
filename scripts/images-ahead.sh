#!/bin/sh
# Builds the layers of the mini environment's images while the program is still being compiled, so that `arenad up`
# finds them in the engine's cache. Only `arenad up` decides which images exist and labels them; nothing depends on this
# script.
#
# Prints one line to stdout for each finished image: `K of N NAME`. The output of the builds goes to stderr.
# Environment: BASE_IMAGE, BASE_IMAGE_TRIXIE and MAP_PBF, as in compose/mini.yaml; otherwise from compose/.env.
set -eu

cd "$(dirname -- "$0")/../compose"
# The environment takes precedence over the file, as in Compose.
for name in BASE_IMAGE BASE_IMAGE_TRIXIE MAP_PBF; do
    eval "[ -n \"\${$name:-}\" ]" || eval "$name=\$(sed -n 's/^$name=//p' .env 2>/dev/null | tail -n 1)"
done

# Lists context, target and base of each image once, such as `mini/map db BASE_IMAGE`.
wanted=$(awk '
    function flush() { if (context != "") print context, target, base; context = ""; target = "-"; base = "BASE_IMAGE" }
    BEGIN { flush() }
    /^  [a-z]/ { flush() }
    $1 == "context:" { context = $2 }
    $1 == "target:" { target = $2 }
    /BASE_IMAGE: .*BASE_IMAGE_TRIXIE/ { base = "BASE_IMAGE_TRIXIE" }
    END { flush() }
' mini.yaml | sort -u)
count=$(printf '%s\n' "$wanted" | wc -l)

# The engine's own builder fills the cache that `arenad up` uses.
DOCKER_BUILDKIT=0
export DOCKER_BUILDKIT
done=0
failed=0
while read -r context target base; do
    eval "image=\$$base"
    set -- --quiet
    [ -z "$image" ] || set -- "$@" --build-arg "BASE_IMAGE=$image"
    [ -z "$MAP_PBF" ] || set -- "$@" --build-arg "MAP_PBF=$MAP_PBF"
    [ "$target" = - ] || set -- "$@" --target "$target"
    # The image gets no tag: `arenad up` makes the image that users see from the same layers.
    if docker build "$@" "$context" >/dev/null; then
        done=$((done + 1))
        name=${context#mini/}
        [ "$target" = - ] || name="$name ($target)"
        echo "$done of $count $name"
    else
        failed=1
    fi
done <<END
$wanted
END
exit "$failed"
