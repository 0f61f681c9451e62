"""Pictures of people, drawn here because Pagure would request them from libravatar.org. A face follows from the e-mail
address, so that people look different. The forum draws the same faces (forum/proj/portraits.py)."""

import colorsys
import hashlib

import flask
import pagure.lib.query

avatars = flask.Blueprint("avatars", __name__)

SKINS = ["#f6d7c3", "#eec1a2", "#d9a066", "#b97a4b", "#8d5a3b", "#5f3d2a"]
HAIRS = ["#2b2320", "#4a3222", "#7a4a21", "#b5813d", "#d8b56a", "#9a9a9a", "#8c3b1f"]


def _address(email, size=64, default="retro", dns=False):
    return f"/avatar/{hashlib.sha256(email.encode()).hexdigest()}.svg?s={size}" if email else None


pagure.lib.query.avatar_url_from_email = _address


def _colour(hue, saturation, lightness):
    return "#" + "".join(f"{round(part * 255):02x}" for part in colorsys.hls_to_rgb(hue / 256, lightness, saturation))


def _oval(x, y, across, down, colour):
    return f'<ellipse cx="{x}" cy="{y}" rx="{across}" ry="{down}" fill="{colour}"/>'


def face(digest):
    """Returns the SVG of a face, drawn from back to front; each byte of the digest determines one feature."""
    shirt, skin, hair = _colour(digest[1], 0.42, 0.42), SKINS[digest[2] % len(SKINS)], HAIRS[digest[3] % len(HAIRS)]
    style, has_glasses, smile = digest[4] % 6, digest[5] % 4 == 0, 8 + digest[7] % 3 * 3
    parts = [f'<rect width="100" height="100" fill="{_colour(digest[0], 0.45, 0.75)}"/>']
    if style in (3, 4):  # long hair behind the head
        parts.append(f'<rect x="25" y="22" width="50" height="62" rx="20" fill="{hair}"/>')
    parts += [_oval(50, 108, 40, 32, shirt), f'<rect x="42" y="60" width="16" height="20" fill="{skin}"/>', _oval(50, 80, 8, 5, skin), _oval(50, 46, 21, 25, skin)]
    if digest[6] % 3 == 0 and style < 3:  # a beard
        parts.append(f'<path d="M29.3 51.5 A21 26 0 0 0 70.7 51.5 Z" fill="{hair}"/>')
    if style in (0, 3):  # parted in the middle
        parts.append(f'<path d="M26 42 A24 25 0 0 1 74 42 Z" fill="{hair}"/><path d="M50 30 L40 43 H60 Z" fill="{skin}"/>')
    elif style in (1, 4):  # a fringe
        parts.append(f'<path d="M27.3 38.5 A23 26 0 0 1 72.7 38.5 Z" fill="{hair}"/>')
    elif style == 5:  # curls
        parts += [_oval(x, y, 9, 9, hair) for x, y in [(30, 36), (34, 26), (42, 20), (50, 18), (58, 20), (66, 26), (70, 36)]]
    if style == 3:  # and a bun
        parts.append(_oval(50, 14, 10, 9, hair))
    for x in (41, 59):
        parts.append(_oval(x, 47, 2.6, 2.8, "#2b2320"))
        if has_glasses:
            parts.append(f'<circle cx="{x}" cy="47" r="6" fill="none" stroke="#333" stroke-width="2"/>')
    if has_glasses:
        parts.append('<path d="M47 46 H53" stroke="#333" stroke-width="2"/>')
    parts.append(f'<path d="M42 {62 - smile / 2} Q50 {62 + smile / 2} 58 {62 - smile / 2}" fill="none" stroke="#7a2e2e" stroke-width="2"/>')
    return "".join(parts)


@avatars.route("/avatar/<digest>.svg")
def avatar(digest):
    """Returns a picture that depends only on the person's e-mail address."""
    try:
        digest = bytes.fromhex(digest)
    except ValueError:
        flask.abort(404)
    if len(digest) != hashlib.sha256().digest_size:
        flask.abort(404)
    size = flask.request.args.get("s", 64, type=int)
    picture = f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" viewBox="0 0 100 100">{face(digest)}</svg>'
    return flask.Response(picture, mimetype="image/svg+xml", headers={"Cache-Control": "public, max-age=86400"})
