"""A DynamoDB for tests: moto's, AWS's SDK as its client."""

import random

from harness.dynamo_exports import ALL_TYPES
from harness.aws_services import Moto

BATCH = 25  # items of a BatchWriteItem, at most


class DynamoDB(Moto):
    """See harness/aws_services.py."""

    def __init__(self, log, authority=None):
        super().__init__(log, authority)
        self.client = self.client_of("dynamodb")

    def create_table(self, name, sort_key=None, view="NEW_AND_OLD_IMAGES"):
        keys = [("Id", "HASH", "S")] + ([(sort_key, "RANGE", "N")] if sort_key else [])
        stream = {"StreamEnabled": view is not None}
        if view is not None:
            stream["StreamViewType"] = view
        self.client.create_table(
            TableName=name, BillingMode="PAY_PER_REQUEST", StreamSpecification=stream,
            KeySchema=[{"AttributeName": each, "KeyType": role} for each, role, _ in keys],
            AttributeDefinitions=[
                {"AttributeName": each, "AttributeType": kind} for each, _, kind in keys
            ],
        )  # fmt: skip

    def write(self, table, puts=(), deletes=()):
        """Items as pairs of type and value; of what is deleted the `Id`."""
        requests = [{"PutRequest": {"Item": wire_item(item)}} for item in puts]
        requests += [{"DeleteRequest": {"Key": {"Id": {"S": name}}}} for name in deletes]
        for at in range(0, len(requests), BATCH):
            left = {table: requests[at : at + BATCH]}
            while left:
                left = self.client.batch_write_item(RequestItems=left)["UnprocessedItems"]

    def items(self, table):
        """{Id: item}, all of them, as DynamoDB's JSON."""
        found = {}
        pages = self.client.get_paginator("scan").paginate(TableName=table)
        for item in (item for page in pages for item in page["Items"]):
            found[item["Id"]["S"]] = item
        return found


def wire_item(item):
    """The item as the SDK wants it, with bytes that are not base64 yet."""

    def typed(kind, value):
        if kind == "L":
            value = [typed(*each) for each in value]
        elif kind == "M":
            value = {name: typed(*each) for name, each in value.items()}
        return {kind: value}

    return {name: typed(*value) for name, value in item.items()}


# Without what moto does not take: an empty member of a set; or mistakes: a map's empty name.
LIVE_TYPES = {
    **ALL_TYPES,
    "blobs": ("BS", [b"\x01", b"\xff\x00"]),
    "map": ("M", {name: value for name, value in ALL_TYPES["map"][1].items() if name}),
}


def random_item(chance, name):
    """An item of some of all types."""
    item = {"Id": ("S", name), "Round": ("N", str(chance.randrange(10**6)))}
    for each in chance.sample(sorted(LIVE_TYPES), 4):
        item[each] = LIVE_TYPES[each]
    item["pad"] = ("S", "x" * chance.randrange(150))
    return item


class Writer:
    """Changes a table at random: new items, new versions of old ones, deletions."""

    def __init__(self, dynamodb, table, names, seed=1):
        self.dynamodb, self.table = dynamodb, table
        self.chance = random.Random(seed)
        self.names = list(names)
        self.next = len(self.names)

    def change(self, count):
        """About so many changes, in batches, none of which has an item twice."""
        for _ in range(max(1, count // BATCH)):
            picked = self.chance.sample(self.names, BATCH - 5)
            fresh = [f"new-{self.next + number:06}" for number in range(5)]
            self.next += len(fresh)
            puts = [random_item(self.chance, name) for name in picked[6:] + fresh]
            self.dynamodb.write(self.table, puts, deletes=picked[:6])
            self.names += fresh
