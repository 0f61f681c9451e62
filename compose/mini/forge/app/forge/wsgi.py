"""The WSGI application that gunicorn serves."""

import forge  # noqa: F401, before anything of Pagure
import arrow
import sqlalchemy.orm
from pagure.flask_app import create_app

import forge.repairs
import forge.sign_in

application = create_app()
application.response_class = forge.sign_in.Response
application.view_functions["internal_ns.task_info"] = forge.repairs.when_done(application.view_functions["internal_ns.task_info"])


def on_day(date):
    """Formats dates as days: "three years ago" would make the pages change with the calendar."""
    return date and arrow.get(date).format("[on] D MMM YYYY")


def on_day_with_time(date):
    return date and f'<span title="{arrow.get(date).format("YYYY-MM-DD HH:mm:ss")} UTC" data-toggle="tooltip">{on_day(date)}</span>'


application.jinja_env.filters.update(humanize=on_day, humanize_tooltip=on_day_with_time)
# The templates are parsed once, before the fork.
for name in application.jinja_env.list_templates(extensions=["html"]):
    application.jinja_env.get_template(name)
# Without this call, the first query would do this work: a tenth of a second in every process.
sqlalchemy.orm.configure_mappers()
