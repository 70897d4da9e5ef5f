/* A manifest written by us: which families there are, and in which level each table is.
 *
 * It has the form of a log (log_scan.cc), a record for each edit, and an edit is numbers and texts
 * with tags before them. What stands here is what RocksDB has written since its first releases and
 * goes on reading; it writes a manifest of its own as soon as it has opened this one. */
#include "store/keyspaces.h"
#include "store/log_pieces.h"
#include "store/old_data.h"

#include <algorithm>

using rocksdb::IOOptions;
using rocksdb::IOStatus;
using rocksdb::Slice;

namespace {

enum tag : uint64_t {
    COMPARATOR = 1,
    LOG_NUMBER = 2,
    NEXT_FILE = 3,
    LAST_SEQUENCE = 4,
    NEW_FILE = 100,
    FAMILY = 200,
    FAMILY_ADD = 201,
    FAMILY_MOST = 203,
};

/* --- an edit --- */

class edit {
  public:
    edit &number(uint64_t value)
    {
        for (; value >= 0x80; value >>= 7)
            text.push_back(static_cast<char>(value | 0x80));
        text.push_back(static_cast<char>(value));
        return *this;
    }

    edit &slice(const std::string &value)
    {
        number(value.size());
        text.append(value);
        return *this;
    }

    std::string text;
};

std::string first_edit(uint64_t manifest, const old_data &found)
{
    edit e;
    uint32_t most = found.last_family;
    for (const found_family &family : found.families)
        most = std::max(most, family.number);
    e.number(COMPARATOR).slice(rocksdb::BytewiseComparator()->Name());
    e.number(LOG_NUMBER).number(0).number(NEXT_FILE).number(manifest + 1);
    e.number(LAST_SEQUENCE).number(found.last_sequence);
    e.number(FAMILY_MOST).number(most);
    return e.text;
}

std::string family_edit(const found_family &family)
{
    edit e;
    e.number(COMPARATOR).slice(rocksdb::BytewiseComparator()->Name());
    e.number(LOG_NUMBER).number(family.log_number);
    e.number(FAMILY).number(family.number);
    e.number(FAMILY_ADD).slice(keyspace_name(family.keyspace));
    return e.text;
}

std::string table_edit(const found_family &family, const found_table &table)
{
    edit e;
    e.number(NEW_FILE).number(static_cast<uint64_t>(table.level));
    e.number(table.number).number(table.size);
    e.slice(table.smallest).slice(table.largest);
    e.number(table.least).number(table.greatest);
    e.number(FAMILY).number(family.number);
    return e.text;
}

} // namespace

IOStatus write_manifest(rocksdb::FileSystem *files, const std::string &directory, uint64_t number,
                        const old_data &found)
{
    record_writer out;
    out.add(first_edit(number, found));
    for (const found_family &family : found.families) {
        out.add(family_edit(family));
        for (const found_table &table : family.tables)
            out.add(table_edit(family, table));
    }
    std::string name = manifest_name(number);
    rocksdb::Status s = rocksdb::WriteStringToFile(files, out.text, directory + "/" + name, true);
    if (s.ok())
        s = rocksdb::WriteStringToFile(files, name + "\n", directory + "/CURRENT", true);
    return rocksdb::status_to_io_status(std::move(s));
}
