"""The present day of the world, at which all seeded data was created."""

import datetime as dt

from freezegun import freeze_time

NOW = dt.datetime(2023, 6, 1, 12, tzinfo=dt.timezone.utc)


def stop():
    freeze_time(NOW).start()
