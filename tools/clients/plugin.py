"""A pytest plugin for Google's suites for Python: the clients take the path that they take to
production, but without credentials, and their channels lead to SUITE_HOST, without TLS."""

import os

import google.auth
import grpc
from google.api_core import grpc_helpers, grpc_helpers_async
from google.auth.credentials import AnonymousCredentials

HOST = os.environ["SUITE_HOST"]
PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
KNOWN = ("options", "compression", "interceptors")


def anonymous(*_, **__):
    return AnonymousCredentials(), PROJECT


def options_of(arguments):
    return {name: arguments[name] for name in KNOWN if arguments.get(name) is not None}


def channel(*_, **arguments):
    return grpc.insecure_channel(HOST, **{
        name: value for name, value in options_of(arguments).items() if name != "interceptors"
    })  # fmt: skip


def channel_of_loop(*_, **arguments):
    return grpc.aio.insecure_channel(HOST, **options_of(arguments))


google.auth.default = anonymous
grpc_helpers.create_channel = channel
grpc_helpers_async.create_channel = channel_of_loop
