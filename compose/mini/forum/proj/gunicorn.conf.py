import gc
import os
import signal
import time

bind = "0.0.0.0:80"
# An instance serves one agent. A second worker would double the processes that each reset stops, forks and warms.
workers = 1
threads = 6
worker_class = "gthread"
# The application is loaded once and then forked: workers start faster and share the memory.
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


def when_ready(server):
    # Loading before the fork saves every visitor the wait.
    import warm

    warm.code()
    warm.templates()
    # Existing objects live forever. The garbage collector must not touch them, or each worker gets its own copy of
    # their memory.
    gc.collect()
    gc.freeze()


def post_fork(server, worker):
    # While the contents of /data are exchanged, new workers wait; the old workers, which cache the old contents, have
    # ended by then. A waiting worker does not serve yet and ends at once on SIGTERM.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while os.path.exists("/run/forum/hold"):
        time.sleep(0.005)
