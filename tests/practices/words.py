"""Words, names, numbers and times, from a random generator: what keys and values are made of.

`Make` is one table's maker: it holds what the whole table has in common, as the span of time in
which it was written.
"""

import json
import struct

DAY = 86_400_000_000  # microseconds

NOUNS = (
    "anchor apple badge barn basket beacon birch bottle branch bridge broom bucket button cabin "
    "camera candle canyon castle cedar chair cherry cliff clock cloud clover comet copper coral "
    "cotton crane creek crown desk dune eagle ember engine falcon feather fern field finch flame "
    "flute forest fossil fountain fox garden gate glacier globe grape grove hammer harbor harvest "
    "hawk hazel heron hill honey island ivory jacket jasmine kettle kite ladder lagoon lamp "
    "lantern lemon lily linen lion lotus maple marble meadow melon mill mirror moon moss mountain "
    "needle "
    "oak oasis olive onion orchard otter owl paddle palm panda paper pearl pebble pepper pine "
    "planet plum pond poppy prairie quartz quill rabbit raven reef ribbon river robin rocket rose "
    "saddle salmon sand sapphire sail shell shore silver sparrow spruce star stone storm stream "
    "sugar summit sun swan table temple thunder tiger timber torch tower trail tulip tunnel turtle "
    "valley velvet violet walnut water wheat willow wind wing winter wolf yarn zebra"
).split()
ADJECTIVES = (
    "amber ancient blue bold brave bright broad calm clear clever cold cool crisp dark deep early "
    "eager fast fine gentle gold golden grand green happy heavy high jolly keen kind large late "
    "light lively long loud lucky mellow mild modern narrow new noble old open pale plain proud "
    "quick quiet rapid rare red rich round royal rural sharp short shy silent simple slow small "
    "smart soft solid steady still strong sunny sweet swift tall tame tidy tiny warm white wide "
    "wild wise young"
).split()
CITIES = tuple(
    tuple(each.split("/"))
    for each in (
        "europe/germany/berlin europe/germany/hamburg europe/germany/munich europe/france/paris "
        "europe/france/lyon europe/italy/rome europe/italy/milan europe/spain/madrid "
        "europe/spain/seville europe/portugal/lisbon europe/poland/warsaw europe/poland/krakow "
        "europe/norway/oslo europe/sweden/stockholm europe/finland/helsinki europe/greece/athens "
        "asia/india/bangalore asia/india/delhi asia/india/mumbai asia/japan/tokyo asia/japan/osaka "
        "asia/china/shanghai asia/china/beijing asia/vietnam/hanoi asia/thailand/bangkok "
        "asia/korea/seoul asia/turkey/ankara africa/kenya/nairobi africa/egypt/cairo "
        "africa/ghana/accra africa/nigeria/lagos africa/morocco/rabat africa/ethiopia/addis-ababa "
        "america/usa/boston america/usa/chicago america/usa/denver america/canada/toronto "
        "america/canada/montreal america/mexico/puebla america/brazil/recife "
            "america/chile/santiago "
        "america/peru/lima america/argentina/rosario oceania/australia/sydney "
        "oceania/australia/perth oceania/zealand/auckland oceania/fiji/suva"
    ).split()
)
UNICODE_WORDS = (
    "Straße Käse Größe Brücke Übung crème garçon forêt château été niño mañana corazón Łódź żółw "
    "źródło čaj řeka škola þing ær ørken дом река книга город солнце вода здание музыка λόγος "
    "θάλασσα ουρανός βιβλίο φως 東京 大阪 京都 新聞 音楽 図書館 寿司 山 川 海 서울 부산 도서관 음악 "
    "北京 上海 书店 茶馆 मुंबई दिल्ली किताब संगीत كتاب مدينة بحر قمر ספר עיר ים กรุงเทพ ตลาด"
).split()
LANGUAGES = "bg cs da de el en es et fi fr ga hr hu it ja ko lt lv mt nl pl pt ro ru sk sv".split()
COUNTRIES = "AR AT AU BE BR CA CH CL CN DE DK EG ES FI FR GB GR HU IE IN IT JP KE KR MX".split()
ENDINGS = "com com com org net de fr io co.uk com.br it nl se jp".split()
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
FIRST_NAMES = (
    "ana ben carla david elena felix greta hugo ines jan karin luis marta nils olga paul rosa "
    "sven tara uwe vera wim yara zoe liam emma noah mia lucas sofia"
).split()
LAST_NAMES = (
    "smith garcia mueller rossi novak kowalski silva dubois jensen tanaka kim singh brown jones "
    "lopez weber fischer moreau costa ivanov petrov larsson virtanen murphy"
).split()


class Make:
    """`now`: microseconds. What is made for a table was written in the `span` before it."""

    def __init__(self, rng, now):
        self.rng = rng
        self.pick = rng.choice
        self.now = now
        self.days = rng.choice([1, 2, 7, 30, 90, 200])
        self.count = rng.choice([300, 600, 1000, 1500, 2000, 3000, 4000])  # rows
        self.mark = rng.choice("####:/|~")  # between the parts of a key

    def chance(self, share):
        return self.rng.random() < share

    def join(self, *parts):
        return self.mark.join(map(str, parts))

    # --- times ---

    def times(self, count=None):
        """In ascending order."""
        span = self.days * DAY
        count = self.count if count is None else count
        offsets = sorted(self.rng.randrange(span) for _ in range(count))
        return [(self.now - span + each) // 1000 * 1000 for each in offsets]

    # --- numbers ---

    def digits(self, width):
        return "".join(self.pick("0123456789") for _ in range(width))

    def text_of(self, alphabet, width):
        return "".join(self.pick(alphabet) for _ in range(width))

    def hex(self, width):
        return f"{self.rng.getrandbits(4 * width):0{width}x}"

    def uuid(self):
        bits = self.hex(32)
        variant = self.pick("89ab")
        return f"{bits[:8]}-{bits[8:12]}-4{bits[13:16]}-{variant}{bits[17:20]}-{bits[20:]}"

    # --- words ---

    def noun(self):
        return self.pick(NOUNS)

    def slug(self, joint="-"):
        return f"{self.pick(ADJECTIVES)}{joint}{self.pick(NOUNS)}"

    def phrase(self, words):
        return " ".join(self.pick(self.pick((NOUNS, ADJECTIVES))) for _ in range(words))

    def distinct(self, count, make):
        """So many different ones, in random order; fewer if there are not so many."""
        found = dict.fromkeys(make() for _ in range(3 * count))
        return list(found)[:count]

    def mail(self):
        name = f"{self.pick(FIRST_NAMES)}.{self.pick(LAST_NAMES)}{self.digits(2)}"
        return f"{name}@{self.noun()}.{self.pick(ENDINGS)}"

    # --- what has a name of its own ---

    def entities(self, count):
        """Names of as many things of one kind, none of which tells anything by its order."""
        return self.distinct(count, self.pick(self.entity_forms()))

    def entity_forms(self):
        prefix = self.pick("dev- usr_ acct- cust- node- truck- S N".split())
        width = self.rng.randint(5, 9)
        oui = [self.hex(6) for _ in range(3)]
        return [
            self.slug,
            lambda: f"{self.slug()}-{self.pick(CITIES)[2]}",
            lambda: prefix + self.digits(width),
            lambda: prefix + self.text_of(CROCKFORD, 8),
            lambda: f"SN{self.text_of('ABCDEFGH', 3)}{self.digits(6)}",
            self.uuid,
            lambda: "-".join((self.pick(oui) + self.hex(6))[i : i + 2] for i in range(0, 12, 2)),
            lambda: f"{self.pick(COUNTRIES)}-{self.digits(6)}",
        ]

    def companies(self, count):
        ends = ("", "", "-labs", "-works", "-group")
        return self.distinct(count, lambda: self.noun() + self.pick(ends))

    def domains(self, count):
        hosts = ("", "", "", "shop.", "mail.", "docs.", "api.", "blog.")
        return self.distinct(
            count,
            lambda: f"{self.pick(hosts)}{self.pick(ADJECTIVES)}{self.noun()}.{self.pick(ENDINGS)}",
        )

    # --- values ---

    def message(self, fields=6):
        """As protobuf has it: small numbers, texts and doubles behind their tags."""
        out = b""
        for number in range(1, fields + 1):
            kind = self.pick("ntd")
            if kind == "n":
                out += bytes([number << 3, self.rng.randrange(128)])
            elif kind == "t":
                text = self.phrase(2).encode()
                out += bytes([number << 3 | 2, len(text)]) + text
            else:
                out += bytes([number << 3 | 1]) + struct.pack("<d", self.rng.gauss(20, 5))
        return out

    def document(self):
        return json.dumps({
            "id": self.hex(8), "name": self.phrase(2), "tags": [self.noun(), self.noun()],
            "score": round(self.rng.random() * 100, 2), "city": self.pick(CITIES)[2],
        }, ensure_ascii=False).encode()  # fmt: skip
