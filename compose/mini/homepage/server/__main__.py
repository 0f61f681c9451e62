"""Runs two processes: the first has loaded everything and holds the port, and its child serves.

The child may have a file of /data open. It can be killed and replaced in a moment; connections wait meanwhile.
"""

import os
import signal
import sys
import threading
import time

from server.web import serve

# While this file exists, no process serves: db-stop creates it and kills the child, db-start removes it.
HOLD = "/run/homepage/hold"


def child(server):
    # The serving loop cannot wait for its own end, so another thread ends it.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.1)
    server.server_close()


def main():
    server, current = serve(("0.0.0.0", 80)), None

    def end(*_):
        if current is None:
            sys.exit(0)
        os.kill(current, signal.SIGTERM)
        os.waitpid(current, 0)
        sys.exit(0)

    signal.signal(signal.SIGTERM, end)
    while True:
        while os.path.exists(HOLD):
            time.sleep(0.005)
        current = os.fork()
        if current == 0:
            child(server)
            os._exit(0)
        os.waitpid(current, 0)
        current = None


main()
