"""The Celery application of the single worker, which runs the tasks of both modules."""

import forge  # noqa: F401, before anything of Pagure
import pagure.lib.tasks
import pagure.lib.tasks_services

app = pagure.lib.tasks.conn
for name, task in pagure.lib.tasks_services.conn.tasks.items():
    app.tasks.setdefault(name, task)
