import os

bind = "0.0.0.0:80"
workers = int(os.environ.get("WEB_WORKERS", "2"))
threads = 4
worker_class = "gthread"
# Loaded once and then forked: quicker to start, and the workers share the memory.
preload_app = True
worker_tmp_dir = "/dev/shm"
# The gateway keeps its connections; closing them first would race with its next request.
keepalive = 75
timeout = 60
graceful_timeout = 3
accesslog = "-"
access_log_format = '%({x-forwarded-for}i)s "%(r)s" %(s)s %(b)s %(M)sms'
