import gc
import os
import signal
import time

bind = "0.0.0.0:80"
workers = int(os.environ.get("WEB_WORKERS", "2"))
threads = 4
worker_class = "gthread"
# Loaded once and then forked: quicker to start, and the workers share the memory.
preload_app = True
worker_tmp_dir = "/dev/shm"
pidfile = "/run/shop/web.pid"
# The gateway keeps its connections; closing them first would race with its next request.
keepalive = 75
timeout = 60
graceful_timeout = 3
# Nobody steers the server from inside the container.
control_socket_disable = True
accesslog = "-"
access_log_format = '%({x-forwarded-for}i)s "%(r)s" %(s)s %(b)s %(M)sms'


def when_ready(server):
    # Before the fork, so that no visitor waits for it.
    import warm

    warm.code()
    warm.templates()
    warm.visits()
    # Otherwise each worker's first garbage collection would copy the memory that all workers share.
    gc.collect()
    gc.freeze()


def post_fork(server, worker):
    # While what lies in /data is exchanged, new workers wait: those that remember the old are dead by then.
    # Until then they are no workers yet, and end at once when they are told to.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while os.path.exists("/run/shop/hold"):
        time.sleep(0.005)
