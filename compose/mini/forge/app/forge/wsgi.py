"""What gunicorn serves."""

import forge
import flask
import forge.repairs  # noqa: F401
from pagure.flask_app import create_app


class Response(flask.Response):
    def set_cookie(self, key, value="", max_age=None, **kwargs):
        """Pagure's log-in ends with the browser; here it is kept, such that a stored one stays valid."""
        super().set_cookie(key, value, max_age=forge.TEN_YEARS if value and max_age is None else max_age, **kwargs)


application = create_app()
application.response_class = Response
# Parsed once, before the fork.
for name in application.jinja_env.list_templates(extensions=["html"]):
    application.jinja_env.get_template(name)
