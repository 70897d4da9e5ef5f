/* Sections of tables. The store knows of a key only its first byte: keys that have it in common are
 * a section. What the layers above keep for different ends begins with different bytes (rows, and
 * their large cells: row/row_key.h), and between the last key of one section and the first of the
 * next may be most of a keyspace.
 *
 *  - A block ends where a section does: else one damaged block would take both sections' keys
 *    between its first and its last out of service.
 *  - A table says of each section which its first and its last key are, in a property of its own:
 *    the index does not, its keys are cut off where blocks can still be told apart, and the one
 *    behind a section's last block may be nothing but the next section's byte.
 *
 * And it says how large its largest value is: what a compaction of the table takes
 * (large_work.cc).
 *
 * RocksDB calls both while it writes a table, for each key; no exception may leave them. */
#include "store/internal.h"

#include "rocksdb/flush_block_policy.h"

#include <algorithm>
#include <cstring>

using rocksdb::Slice;

namespace {

constexpr char PROPERTY[] = "trestle.sections", LARGEST[] = "trestle.largest";
enum : size_t { SEQUENCE_SIZE = 8 }; /* behind a key, where it is one of a table */
enum : int { NO_SECTION = -1 };

int section_of(const char *key, size_t size)
{
    return size == 0 ? 0 : static_cast<unsigned char>(key[0]);
}

/* --- where blocks end --- */

class section_policy : public rocksdb::FlushBlockPolicy {
  public:
    explicit section_policy(rocksdb::FlushBlockPolicy *by_size_) : by_size(by_size_) {}

    bool Update(const Slice &key, const Slice &value) override
    {
        int section = section_of(key.data(), key.size() - SEQUENCE_SIZE);
        bool is_over = current != NO_SECTION && current != section;
        current = section;
        return is_over || by_size->Update(key, value);
    }

  private:
    const std::unique_ptr<rocksdb::FlushBlockPolicy> by_size;
    int current = NO_SECTION;
};

class section_policy_factory : public rocksdb::FlushBlockPolicyFactory {
  public:
    const char *Name() const override { return "trestle.SectionBlocks"; }

    rocksdb::FlushBlockPolicy *
    NewFlushBlockPolicy(const rocksdb::BlockBasedTableOptions &options,
                        const rocksdb::BlockBuilder &block) const override
    {
        rocksdb::FlushBlockPolicy *plain = by_size.NewFlushBlockPolicy(options, block);
        auto made = new (std::nothrow) section_policy(plain);
        return made != nullptr ? made : plain;
    }

  private:
    const rocksdb::FlushBlockBySizePolicyFactory by_size;
};

/* --- what a table says --- */

/* Four bytes, little-endian, as the machines are, and the key. */
void append_key(std::string *out, const std::string &key)
{
    auto size = static_cast<uint32_t>(key.size());
    out->append(reinterpret_cast<const char *>(&size), sizeof size);
    out->append(key);
}

bool take_key(Slice *in, std::string *out)
{
    uint32_t size = 0;
    if (in->size() < sizeof size)
        return false;
    memcpy(&size, in->data(), sizeof size);
    in->remove_prefix(sizeof size);
    if (in->size() < size)
        return false;
    out->assign(in->data(), size);
    in->remove_prefix(size);
    return true;
}

class section_collector : public rocksdb::TablePropertiesCollector {
  public:
    /* Without memory the table says nothing. */
    rocksdb::Status AddUserKey(const Slice &key, const Slice &value, rocksdb::EntryType type,
                               rocksdb::SequenceNumber, uint64_t) override
    {
        largest = std::max<uint64_t>(largest, value.size());
        if (type == rocksdb::kEntryRangeDeletion || has_failed)
            return rocksdb::Status::OK();
        try {
            add(key);
        } catch (const std::bad_alloc &) {
            has_failed = true;
        }
        return rocksdb::Status::OK();
    }

    rocksdb::Status Finish(rocksdb::UserCollectedProperties *properties) override
    {
        try {
            end_section();
            if (!has_failed && !text.empty())
                (*properties)[PROPERTY] = text;
            (*properties)[LARGEST] = std::to_string(largest);
        } catch (const std::bad_alloc &) {
            properties->erase(PROPERTY);
        }
        return rocksdb::Status::OK();
    }

    rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
    const char *Name() const override { return PROPERTY; }

  private:
    void add(const Slice &key)
    {
        int section = section_of(key.data(), key.size());
        if (section != current) {
            end_section();
            append_key(&text, key.ToString());
        }
        current = section;
        last.assign(key.data(), key.size());
    }

    void end_section()
    {
        if (current != NO_SECTION)
            append_key(&text, last);
        current = NO_SECTION;
    }

    std::string text; /* of each section the first key and the last, in order */
    std::string last;
    uint64_t largest = 0; /* bytes of a value */
    int current = NO_SECTION;
    bool has_failed = false;
};

class section_collector_factory : public rocksdb::TablePropertiesCollectorFactory {
  public:
    const char *Name() const override { return "trestle.SectionCollector"; }

    rocksdb::TablePropertiesCollector *CreateTablePropertiesCollector(Context) override
    {
        return new section_collector();
    }
};

} // namespace

std::shared_ptr<rocksdb::FlushBlockPolicyFactory> make_section_blocks()
{
    return std::make_shared<section_policy_factory>();
}

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_section_collector()
{
    return std::make_shared<section_collector_factory>();
}

std::vector<table_section> sections_of(const std::map<std::string, std::string> &properties)
{
    std::vector<table_section> out;
    auto found = properties.find(PROPERTY);
    Slice rest = found == properties.end() ? Slice() : Slice(found->second);
    while (!rest.empty()) {
        table_section one;
        if (!take_key(&rest, &one.first) || !take_key(&rest, &one.last))
            return {};
        out.push_back(std::move(one));
    }
    return out;
}

bool largest_told(const std::map<std::string, std::string> &properties, uint64_t *size)
{
    auto found = properties.find(LARGEST);
    *size = found == properties.end() ? 0 : strtoull(found->second.c_str(), nullptr, 10);
    return found != properties.end();
}

/* The key in its place that stands for the block's last must be out of service, too. */
static void end_with(const std::string &last, bad_block *block)
{
    std::string end = last + '\0';
    if (end >= block->to)
        return;
    block->to = std::move(end);
    block->last = last + std::string(SEQUENCE_SIZE, '\0');
}

void clip_to_sections(const std::vector<table_section> &sections, bad_block *block)
{
    auto meets = [&](const table_section &one) {
        return one.last >= block->from && one.first < block->to;
    };
    auto first = std::find_if(sections.begin(), sections.end(), meets);
    auto last = std::find_if(sections.rbegin(), sections.rend(), meets);
    if (first == sections.end())
        return;
    block->from = std::max(block->from, first->first);
    end_with(last->last, block);
}
