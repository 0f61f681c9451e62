import os
import signal
import time

bind = "0.0.0.0:80"
# One process is enough, because SQLite allows one writer at a time.
workers = 1
threads = 6
worker_class = "gthread"
preload_app = True
worker_tmp_dir = "/dev/shm"
# The gateway keeps its connections open; closing them here would race with its next request.
keepalive = 75
# No limit: a worker of a standby that was paused has not reported for as long, and would be killed once it is resumed.
timeout = 0
graceful_timeout = 3
# The server is not controlled from inside the container.
control_socket_disable = True
accesslog = "-"
access_log_format = '%({x-forwarded-for}i)s "%(r)s" %(s)s %(b)s %(M)sms'


def post_fork(server, worker):
    # While the contents of /data are exchanged, new workers wait; the old workers, which cache the old contents, have
    # ended by then. A waiting worker does not serve yet and ends at once on SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while os.path.exists("/run/turkle/hold"):
        time.sleep(0.005)
