import signal
import threading

from server.web import serve


def main():
    server = serve(("0.0.0.0", 80))
    # The loop that serves cannot wait for its own end, so another thread ends it.
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
    server.serve_forever(poll_interval=0.1)
    server.server_close()


main()
