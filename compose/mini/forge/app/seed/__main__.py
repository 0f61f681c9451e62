"""Fills the empty database and the empty folder of repositories with data."""

import forge  # noqa: F401, before anything of Pagure
from pagure.config import config
from pagure.lib import model, model_base

from seed import people, projects, warm

model.create_tables(config["DB_URL"], acls=config["ACLS"])
session = model_base.create_session(config["DB_URL"])
everyone = people.create(session)
projects.create(session, everyone, people.create_groups(session, everyone))
session.commit()
session.remove()
warm.crawl()
