"""A lookup of large entities never came through to a Python client.

Found by tests/e2e/test_datastore_client.py. An answer ended behind the entity that made it longer
than 4 MiB; a client that was told of the server by DATASTORE_EMULATOR_HOST takes messages up to
4 MiB, as gRPC does unless it is told otherwise, and said RESOURCE_EXHAUSTED. What does not fit is
deferred now before it is in the answer."""

from harness.datastore import Raw, entity, fresh_client

MESSAGE_BYTES = 4 << 20


def test_an_answer_is_no_longer_than_a_message(server):
    client = fresh_client(server.host)
    raw = Raw(client)
    for size in 1_000_000, 700_000, 100_000, 999:
        made = [entity(client, f"K{size}", n + 1, exclude=("x",), x=b"x" * size) for n in range(60)]
        for at in range(0, 60, 8):
            client.put_multi(made[at : at + 8])
        answer = raw.lookup(*(each.key.to_protobuf() for each in made))
        assert answer._pb.ByteSize() <= MESSAGE_BYTES
        assert len(answer.found) == min(60, MESSAGE_BYTES // size)
        assert len(answer.found) + len(answer.deferred) == 60
        assert len(client.get_multi([each.key for each in made])) == 60
