"""Two processes: the first has loaded everything and holds the port, its child serves.

So the child, which may have a file of /data open, can be killed and made anew in a moment. Connections wait meanwhile.
"""

import os
import signal
import sys
import threading
import time

from server.web import serve

# While this file is there, nobody serves: db-stop makes it and kills the child, db-start removes it.
HOLD = "/run/homepage/hold"


def child(server):
    # The loop that serves cannot wait for its own end, so another thread ends it.
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
