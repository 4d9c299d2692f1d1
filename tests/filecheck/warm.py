"""`jascend-opt` without its start-up time, for running many tests.

`warm.py serve SOCKET` loads everything once and then forks for each request: a run is as separate as a process of its
own, and costs a few milliseconds. `warm.py run SOCKET ARGUMENTS...` is such a request; it hands over its standard
streams, its directory and its environment, and exits as `jascend-opt` does. The server stops when its stdin closes.
"""

import json
import os
import select
import signal
import socket
import sys
import traceback

_CRASHED = 134  # as a shell reports an abort


def run(path: str, arguments: list[str]) -> int:
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        request = {"arguments": arguments, "directory": os.getcwd(), "environment": dict(os.environ)}
        socket.send_fds(server, [json.dumps(request).encode() + b"\n"], [0, 1, 2])
        answer = server.recv(16)
    if not answer:
        print("jascend-opt crashed", file=sys.stderr)
    return int(answer) if answer else _CRASHED


def serve(path: str) -> None:
    from jascend.dialect import make_context
    from jascend.passes import all_passes, opt

    make_context()
    all_passes()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the children
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen(64)
        print("ready", flush=True)
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            client, _ = listener.accept()
            with client:
                if not os.fork():
                    _answer(client, opt.main)


def _answer(client: socket.socket, main) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        message, streams, _, _ = socket.recv_fds(client, 1 << 16, 3)
        while not message.endswith(b"\n"):
            message += client.recv(1 << 16)
        request = json.loads(message)
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(request["directory"])
        os.environ.clear()
        os.environ.update(request["environment"])
        status = main(request["arguments"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        client.send(str(status).encode())
        os._exit(0)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        sys.exit(run(sys.argv[2], sys.argv[3:]))
