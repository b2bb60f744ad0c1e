"""On the path of every command that a test starts: it reaches loopback only, like the tests themselves."""

try:
    from pytest_socket import socket_allow_hosts
except ImportError:  # an environment of users, without pytest: there the test says so itself
    pass
else:
    socket_allow_hosts(["127.0.0.1", "::1", "localhost"], allow_unix_socket=True)
