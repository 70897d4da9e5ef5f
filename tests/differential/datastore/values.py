"""Keys and values, as the JSON of the messages: few of each, so that they meet again."""

import base64

INSTANTS = ["1960-01-02T03:04:05.678901Z", "1970-01-01T00:00:00.000002Z", "2020-02-29T12:00:00Z"]
NUMBERS = [-3, -1, 0, 1, 2, 2, 3, 5, 9007199254740993]
EXTREMES = [2**63 - 1, -(2**63)]
DOUBLES = [-7.5, "-0", 0.5, 1.0, 2.0, 5.0, 1e300]
STRANGE_DOUBLES = ["NaN", "Infinity", "-Infinity"]
STRINGS = ["", "a", "ab", "b", "é", "😀", "z\n\"'"]
BLOBS = [b"", b"a", b"ab", b"\x00", b"\xff\x00"]
POINTS = [(-10, 5), (10, -5), (0, 0), (10, 5)]
KINDS = ["A", "B", "C"]
NAMESPACES = ["", "", "", "", "n"]
PATHS = [
    ["A", 1], ["A", 2], ["A", 3], ["A", 4], ["A", 12], ["A", "x"], ["A", "é"],
    ["B", 1], ["B", 2], ["B", "x"], ["B", "y"], ["C", 1], ["C", "x"],
    ["A", 1, "A", 1], ["A", 1, "B", 1], ["A", 1, "B", 2], ["A", 1, "B", "x"], ["A", 1, "C", 1],
    ["A", 2, "B", 1], ["A", "x", "B", 1], ["A", 1, "B", 1, "C", 1], ["A", 1, "B", 1, "A", 2],
]  # fmt: skip


def key(path, namespace=""):
    elements = []
    for kind, which in zip(path[::2], path[1::2], strict=True):
        element = {"kind": kind}
        if which is not None:
            element["id" if isinstance(which, int) else "name"] = (
                str(which) if isinstance(which, int) else which
            )
        elements.append(element)
    made = {"path": elements}
    if namespace:
        made["partitionId"] = {"namespaceId": namespace}
    return made


def blob(data):
    return {"blobValue": base64.b64encode(data).decode()}


def integer(number):
    return {"integerValue": str(number)}


class Values:
    """Random keys and values of a round."""

    def __init__(self, dice):
        self.dice = dice
        self.paths = dice.sample(PATHS, 14)

    def namespace(self):
        return self.dice.choice(NAMESPACES)

    def key(self, namespace=""):
        return key(self.dice.choice(self.paths), namespace)

    def integer(self):
        return integer(self.dice.choice(NUMBERS if self.dice.random() < 0.97 else EXTREMES))

    def double(self):
        strange = self.dice.random() < 0.15
        return {"doubleValue": self.dice.choice(STRANGE_DOUBLES if strange else DOUBLES)}

    def string(self):
        return {"stringValue": self.dice.choice(STRINGS)}

    def scalar(self):
        """Of any type that an index holds."""
        make = self.dice.choice(
            [self.integer, self.integer, self.integer, self.double, self.string, self.string,
             self.boolean, self.instant, self.blob, self.point, self.key_value, self.null]
        )  # fmt: skip
        return make()

    def boolean(self):
        return {"booleanValue": self.dice.random() < 0.5}

    def instant(self):
        return {"timestampValue": self.dice.choice(INSTANTS)}

    def blob(self):
        return blob(self.dice.choice(BLOBS))

    def point(self):
        latitude, longitude = self.dice.choice(POINTS)
        return {"geoPointValue": {"latitude": latitude, "longitude": longitude}}

    def key_value(self):
        return {"keyValue": self.key()}

    @staticmethod
    def null():
        return {"nullValue": None}

    def array(self):
        some = [self.element() for _ in range(self.dice.choice([0, 1, 1, 2, 2, 3]))]
        return {"arrayValue": {"values": some}}

    def element(self):
        """Of an array: mostly small numbers, which queries ask for."""
        chance = self.dice.random()
        if chance < 0.6:
            return integer(self.dice.choice([0, 1, 2, 3]))
        return self.inner_entity() if chance > 0.96 else self.scalar()

    def inner_entity(self):
        properties = {name: self.integer() for name in "xy" if self.dice.random() < 0.7}
        if self.dice.random() < 0.2:
            properties["z"] = self.scalar()
        return {"entityValue": {"properties": properties}}

    def of(self, name):
        """A value for a property, by its name: a and b are numbers mostly, and so on."""
        if self.dice.random() < 0.06:
            return self.scalar()
        makers = {
            "a": self.integer, "b": self.integer, "s": self.string, "t": self.array,
            "d": self.double, "v": self.scalar, "e": self.inner_entity,
        }  # fmt: skip
        return makers[name]()

    def property(self, name):
        value = self.of(name)
        if self.dice.random() < 0.07 and "arrayValue" not in value:
            value["excludeFromIndexes"] = True
        return value

    def properties(self):
        return {name: self.property(name) for name in "abstdve" if self.dice.random() < 0.45}
