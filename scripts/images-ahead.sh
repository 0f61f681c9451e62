#!/bin/sh
# Builds the layers of the mini environment's images while the program is still being compiled, so that `arenad up` finds
# them in the engine's cache. `arenad up` alone decides what an image is and labels it; nothing depends on this script.
#
# One line on stdout for each image that is done: `K of N NAME`. What the builds print goes to stderr.
# Environment: BASE_IMAGE, BASE_IMAGE_TRIXIE, MAP_PBF, as in compose/mini.yaml; else compose/.env.
set -eu

cd "$(dirname -- "$0")/../compose"
# The environment wins over the file, as it does for Compose.
for name in BASE_IMAGE BASE_IMAGE_TRIXIE MAP_PBF; do
    eval "[ -n \"\${$name:-}\" ]" || eval "$name=\$(sed -n 's/^$name=//p' .env 2>/dev/null | tail -n 1)"
done

# Context, target and base of each image, once: `mini/map db BASE_IMAGE`.
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

# The engine's own builder, whose cache is the one that `arenad up` meets.
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
    # Without a tag: the image that users see is the one that `arenad up` makes of the same layers.
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
