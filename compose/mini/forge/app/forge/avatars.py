"""Pictures of people, drawn here: Pagure would ask libravatar.org for them."""

import hashlib

import flask
import pagure.lib.query

avatars = flask.Blueprint("avatars", __name__)


def _address(email, size=64, default="retro", dns=False):
    return f"/avatar/{hashlib.sha256(email.encode()).hexdigest()}.svg?s={size}" if email else None


pagure.lib.query.avatar_url_from_email = _address


@avatars.route("/avatar/<digest>.svg")
def avatar(digest):
    """Five by five cells, mirrored, in a colour of their own: the same person looks the same everywhere."""
    try:
        bits = int(digest[:12], 16)
    except ValueError:
        flask.abort(404)
    size = flask.request.args.get("s", 64, type=int)
    hue, cells = bits % 360, bits // 360
    squares = "".join(
        f'<rect x="{x}" y="{y}" width="1" height="1"/>'
        for y in range(5) for x in range(5) if cells >> (y * 3 + min(x, 4 - x)) & 1)
    picture = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="-.5 -.5 6 6">'
               f'<rect x="-.5" y="-.5" width="6" height="6" fill="#eee"/><g fill="hsl({hue},55%,45%)" shape-rendering="crispEdges">{squares}</g></svg>')
    return flask.Response(picture, mimetype="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})
