"""Sends requests to a server on this machine at random times (a Poisson process).

usage: requests.py PORT PER_SECOND REQUEST
       with Python's escapes in REQUEST, such as \\r\\n; one connection each 50 requests
"""

import random
import socket
import sys
import time

port, rate, request = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
request = request.encode().decode("unicode_escape").encode()
while True:
    with socket.create_connection(("127.0.0.1", port)) as server:
        for _ in range(50):
            time.sleep(random.expovariate(rate))
            server.sendall(request)
            server.recv(65536)
