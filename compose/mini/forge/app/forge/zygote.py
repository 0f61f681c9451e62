"""Imports Pagure once, for all processes that need it.

The import takes a second of processor time and eighty megabytes. One process does it and forks the others: the web
server, the worker, and one process for each hook that git runs. A client runs `/srv/forge/pagure ROLE`, which connects
to the socket, sends its arguments, environment, folder and standard streams, passes signals on and waits for the exit
code.

A child does not outlive its client, so killing the client, as a supervisor does, kills the child and its children. It
does not outlive this process either.
"""

import ctypes
import gc
import json
import os
import selectors
import signal
import socket
import sys
import traceback

import celery.__main__
import gunicorn.app.wsgiapp
import gunicorn.workers.gthread  # noqa: F401, so that children need not import it

import forge.worker  # noqa: F401
import forge.wsgi  # noqa: F401
from pagure.hooks import run_hook_file

SOCKET = "/run/forge/pagure.sock"
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG in <linux/prctl.h>
HOOKS = ("pre-receive", "update", "post-receive")


def web():
    sys.argv = ["gunicorn", "-c", "/srv/forge/app/forge/gunicorn.conf.py", "forge.wsgi:application"]
    gunicorn.app.wsgiapp.run()


def worker():
    sys.argv = ["celery", "-A", "forge.worker", "worker", "--loglevel", "WARNING", "--concurrency", "1", "--without-gossip", "--without-mingle",
                "--without-heartbeat"]
    celery.__main__.main()


def play(request, streams):
    """The life of a child process, from the fork to the exit."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.setsid()
    ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.argv, code = request["arguments"], 0
    role = os.path.basename(sys.argv[0])
    try:
        run_hook_file(role) if role in HOOKS else {"web": web, "worker": worker}[sys.argv[1]]()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def main():
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(SOCKET)
    listener.listen(64)
    wake, alarm = socket.socketpair()
    alarm.setblocking(False)
    wake.setblocking(False)
    signal.set_wakeup_fd(alarm.fileno(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    watched, children = selectors.DefaultSelector(), {}
    watched.register(listener, selectors.EVENT_READ)
    watched.register(wake, selectors.EVENT_READ)
    # Existing objects live forever. The garbage collector skips them from now on, so that the children continue to
    # share their memory pages.
    gc.collect()
    gc.freeze()
    while True:
        for key, _ in watched.select():
            if key.fileobj is wake:
                wake.recv(4096)
                _bury(watched, children)
            elif key.fileobj is listener:
                client, _ = listener.accept()
                watched.register(client, selectors.EVENT_READ)
            elif key.fd in watched.get_map():
                _serve(watched, children, key.fileobj, listener)


def _serve(watched, children, client, listener):
    message, streams, _, _ = socket.recv_fds(client, 1 << 20, 3)
    child = next((pid for pid, of in children.items() if of is client), None)
    if not message:
        watched.unregister(client)
        client.close()
        if child:
            os.killpg(child, signal.SIGKILL)
    elif child:
        os.kill(child, int(message))
    else:
        pid = os.fork()
        if pid == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for key in list(watched.get_map().values()):
                key.fileobj.close()
            play(json.loads(message), streams)
        children[pid] = client
        for stream in streams:
            os.close(stream)


def _bury(watched, children):
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        client = children.pop(pid)
        if client.fileno() >= 0:
            code = os.waitstatus_to_exitcode(status)
            client.send(str(code if code >= 0 else 128 - code).encode())
            watched.unregister(client)
            client.close()


main()
