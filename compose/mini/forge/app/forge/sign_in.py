"""The log-in form, with the labels that log-in scripts for GitLab look for, and long-lived sessions."""

import datetime

import flask
import pagure.lib.model as model
import pagure.lib.query
import pagure.login_forms
import sqlalchemy
import wtforms

TEN_YEARS = datetime.timedelta(days=3650)


def _name_of(text):
    """Returns the user name for an e-mail address, because Pagure identifies people by their names."""
    if text and "@" in text:
        user = pagure.lib.query.search_user(flask.g.session, email=text)
        return user.username if user else text
    return text


pagure.login_forms.LoginForm.username = wtforms.StringField("Username or email", [wtforms.validators.DataRequired()], filters=[_name_of])


@sqlalchemy.event.listens_for(model.PagureUserVisit.expiry, "set", retval=True)
def _keep_expiry(visit, value, old, initiator):
    """Sessions last ten years from the log-in. Pagure would extend them, and so write to the database, on every page."""
    return old if isinstance(old, datetime.datetime) else datetime.datetime.utcnow() + TEN_YEARS


class Response(flask.Response):
    def set_cookie(self, key, value="", max_age=None, **kwargs):
        """Gives Pagure's session cookie a long lifetime, so that a stored one stays valid."""
        super().set_cookie(key, value, max_age=TEN_YEARS if value and max_age is None else max_age, **kwargs)
