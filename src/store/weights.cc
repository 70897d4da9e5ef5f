/* The largest that a keyspace has. What the values of one owner (store_fold.owner: of a row, all of
 * its large cells) come to is noted where it is seen anyway, while a table is written by a flush or
 * a compaction: in a property of the table, hence for as long as the table is there, and wherever
 * it is taken. What is not in a table yet is in a write buffer, which is walked over.
 *
 *  - A table notes the WEIGHTS_OF_TABLE heaviest owners of LEAST bytes or more. An owner whose
 *    values lie in several tables has a note in each; keyspace_weigh gives the sum.
 *  - A note is what was written, not what is there: values that were deleted or written over count
 *    until compactions meet them. The caller looks itself at what is there.
 *
 * The iterator over write buffers opens no table, so it need not come from level0.cc as others do.
 *
 * RocksDB calls the collector for each key of a table; no exception may leave it. */
#include "store/internal.h"

#include <algorithm>
#include <cstring>

using rocksdb::Slice;

namespace {

constexpr char PROPERTY[] = "trestle.weights";
enum : uint64_t { LEAST = 1 << 20 };
enum : size_t {
    WEIGHTS_OF_TABLE = 8,
    WEIGHTS_TOLD = 32,
    WEIGHTS_GATHERED = 4096,  /* before the lightest are forgotten */
    BUFFERED_LEAST = 4 << 20, /* bytes in write buffers, for a walk over them */
    BUFFERED_KEYS = 100000,   /* that are walked over */
};

struct weight {
    std::string owner;
    uint64_t size = 0; /* of keys and values */
    uint64_t largest_value = 0;
};

/* A value of a tenth of what is too large for an owner is as bad as that. */
uint64_t rank_of(const weight &w)
{
    enum : uint64_t { VALUE_RANK = 10 };
    return std::max(w.size, VALUE_RANK * w.largest_value);
}

/* Makes one of those that have one owner, and leaves the heaviest, in the order of their rank. */
void condense(std::vector<weight> *all, size_t most)
{
    std::sort(all->begin(), all->end(),
              [](const weight &a, const weight &b) { return a.owner < b.owner; });
    size_t kept = 0;
    for (size_t i = 0; i < all->size(); i++) {
        if (kept > 0 && (*all)[kept - 1].owner == (*all)[i].owner) {
            (*all)[kept - 1].size += (*all)[i].size;
            (*all)[kept - 1].largest_value =
                std::max((*all)[kept - 1].largest_value, (*all)[i].largest_value);
        } else if (kept++ < i) {
            (*all)[kept - 1] = std::move((*all)[i]);
        }
    }
    all->resize(kept);
    std::sort(all->begin(), all->end(),
              [](const weight &a, const weight &b) { return rank_of(a) > rank_of(b); });
    if (all->size() > most)
        all->resize(most);
}

/* Adds up what comes by rising key. */
class scale {
  public:
    explicit scale(size_t (*owner_)(bytes)) : owner_of(owner_) {}

    void add(const Slice &key, size_t value_size)
    {
        bool is_same = has_owner && key.starts_with(current.owner);
        if (!is_same) {
            end_owner();
            size_t size = owner_of(from_slice(key));
            has_owner = size > 0;
            current.owner.assign(key.data(), size);
        }
        if (!has_owner)
            return;
        current.size += key.size() + value_size;
        current.largest_value = std::max<uint64_t>(current.largest_value, value_size);
    }

    void end(size_t most)
    {
        end_owner();
        condense(&noted, most);
    }

    std::vector<weight> noted; /* after the end */

  private:
    void end_owner()
    {
        if (has_owner && current.size >= LEAST)
            noted.push_back(current);
        if (noted.size() > WEIGHTS_GATHERED)
            condense(&noted, WEIGHTS_TOLD);
        current = weight();
        has_owner = false;
    }

    size_t (*const owner_of)(bytes);
    weight current;
    bool has_owner = false;
};

/* --- what a table says --- */

void append_number(std::string *out, uint64_t number)
{
    out->append(reinterpret_cast<const char *>(&number), sizeof number);
}

bool take_number(Slice *in, uint64_t *out)
{
    if (in->size() < sizeof *out)
        return false;
    memcpy(out, in->data(), sizeof *out);
    in->remove_prefix(sizeof *out);
    return true;
}

std::string text_of(const std::vector<weight> &weights)
{
    std::string text;
    for (const weight &w : weights) {
        append_number(&text, w.owner.size());
        text.append(w.owner);
        append_number(&text, w.size);
        append_number(&text, w.largest_value);
    }
    return text;
}

/* Up to what does not parse. */
void append_weights(Slice text, std::vector<weight> *out)
{
    uint64_t size;
    weight w;
    while (take_number(&text, &size) && text.size() >= size) {
        w.owner.assign(text.data(), size);
        text.remove_prefix(size);
        if (!take_number(&text, &w.size) || !take_number(&text, &w.largest_value))
            return;
        out->push_back(w);
    }
}

class weight_collector : public rocksdb::TablePropertiesCollector {
  public:
    explicit weight_collector(size_t (*owner)(bytes)) : weighed(owner) {}

    /* Without memory the table says nothing. */
    rocksdb::Status AddUserKey(const Slice &key, const Slice &value, rocksdb::EntryType type,
                               rocksdb::SequenceNumber, uint64_t) override
    {
        if ((type != rocksdb::kEntryPut && type != rocksdb::kEntryMerge) || has_failed)
            return rocksdb::Status::OK();
        try {
            weighed.add(key, value.size());
        } catch (const std::bad_alloc &) {
            has_failed = true;
        }
        return rocksdb::Status::OK();
    }

    rocksdb::Status Finish(rocksdb::UserCollectedProperties *properties) override
    {
        try {
            weighed.end(WEIGHTS_OF_TABLE);
            if (!has_failed && !weighed.noted.empty())
                (*properties)[PROPERTY] = text_of(weighed.noted);
        } catch (const std::bad_alloc &) {
            properties->erase(PROPERTY);
        }
        return rocksdb::Status::OK();
    }

    rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
    const char *Name() const override { return PROPERTY; }

  private:
    scale weighed;
    bool has_failed = false;
};

class weight_collector_factory : public rocksdb::TablePropertiesCollectorFactory {
  public:
    explicit weight_collector_factory(size_t (*owner_)(bytes)) : owner(owner_) {}

    const char *Name() const override { return "trestle.WeightCollector"; }

    rocksdb::TablePropertiesCollector *CreateTablePropertiesCollector(Context) override
    {
        return new weight_collector(owner);
    }

  private:
    size_t (*const owner)(bytes);
};

/* --- all of a keyspace --- */

/* Tables that cannot be read say nothing. */
void add_tables(keyspace *keyspace, std::vector<weight> *out)
{
    rocksdb::TablePropertiesCollection tables;
    if (!keyspace->db->GetPropertiesOfAllTables(keyspace->handle, &tables).ok())
        return;
    for (const auto &table : tables) {
        const auto &properties = table.second->user_collected_properties;
        auto found = properties.find(PROPERTY);
        if (found != properties.end())
            append_weights(found->second, out);
        if (out->size() > WEIGHTS_GATHERED)
            condense(out, WEIGHTS_GATHERED / 2);
    }
}

void add_buffers(keyspace *keyspace, bytes from, bytes to, std::vector<weight> *out)
{
    uint64_t size = 0;
    keyspace->db->GetIntProperty(keyspace->handle, rocksdb::DB::Properties::kCurSizeAllMemTables,
                                 &size);
    if (size < BUFFERED_LEAST)
        return;
    rocksdb::ReadOptions options;
    Slice upper = to_slice(to);
    options.read_tier = rocksdb::ReadTier::kMemtableTier;
    options.iterate_upper_bound = &upper;
    std::unique_ptr<rocksdb::Iterator> all(keyspace->db->NewIterator(options, keyspace->handle));
    scale weighed(keyspace->store->fold->owner);
    size_t count = 0;
    for (all->Seek(to_slice(from)); all->Valid() && count < BUFFERED_KEYS; all->Next(), count++)
        weighed.add(all->key(), all->value().size());
    all->status().PermitUncheckedError(); /* what was met counts */
    weighed.end(WEIGHTS_TOLD);
    out->insert(out->end(), weighed.noted.begin(), weighed.noted.end());
}

} // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory>
make_weight_collector(size_t (*owner)(bytes key))
{
    return std::make_shared<weight_collector_factory>(owner);
}

status keyspace_weigh(keyspace *keyspace, bytes from, bytes to,
                      bool (*visit)(void *context, const store_weight *weight), void *context)
{
    CHECK_MAGIC(keyspace, KEYSPACE_MAGIC);
    if (keyspace->store->fold->owner == nullptr)
        return status_ok();
    return guarded([&] {
        std::vector<weight> all;
        add_tables(keyspace, &all);
        add_buffers(keyspace, from, to, &all);
        condense(&all, WEIGHTS_TOLD);
        for (const weight &w : all) {
            const store_weight told = {bytes_make(w.owner.data(), w.owner.size()), w.size,
                                       w.largest_value};
            if (!visit(context, &told))
                break;
        }
        return status_ok();
    });
}
