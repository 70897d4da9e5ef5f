/* RocksDB's merge operator and compaction filter in terms of `struct store_fold`. */
#include "store/internal.h"
#include "store/waste.h"

#include "rocksdb/compaction_filter.h"
#include "rocksdb/merge_operator.h"

static thread_local store_folded operands_folded; /* for fold_watch */
static thread_local bool lacked_memory;           /* for is_lack_of_memory */
static thread_local const void *rules_instead;    /* for rules_scope */

/* The rules that a fold on the present thread goes by. */
static const void *rules_of(const folder *folder)
{
    if (rules_instead != nullptr)
        return rules_instead;
    const void *rules = folder->rules.load(std::memory_order_acquire);
    return rules != nullptr ? rules : folder->before;
}

namespace {

/* Operands as the row layer wants them. Most keys have few: those need no allocation. */
class operand_array {
  public:
    template <typename slices> explicit operand_array(const slices &list) : count(list.size())
    {
        if (count > FEW)
            many.reset(new bytes[count]);
        bytes *to = const_cast<bytes *>(data());
        for (const rocksdb::Slice &operand : list) {
            total += operand.size();
            *to++ = from_slice(operand);
        }
    }

    const bytes *data() const { return count > FEW ? many.get() : few; }

    const size_t count;
    size_t total = 0; /* bytes in all operands */

  private:
    enum { FEW = 16 };
    bytes few[FEW];
    std::unique_ptr<bytes[]> many;
};

struct scratch : buffer {
    scratch() : buffer{} {}
    ~scratch() { buffer_free(this); }
    scratch(const scratch &) = delete;
    scratch &operator=(const scratch &) = delete;
};

class merge_operator final : public rocksdb::MergeOperator {
  public:
    explicit merge_operator(std::shared_ptr<struct folder> folder_) : folder(std::move(folder_)) {}

    const char *Name() const override { return "trestle.fold"; }

    bool FullMergeV2(const MergeOperationInput &in, MergeOperationOutput *out) const override
    {
        try {
            return whole(in, out);
        } catch (const std::exception &) { /* out of memory */
            lacked_memory = true;
            return false;
        }
    }

    bool PartialMergeMulti(const rocksdb::Slice &key, const std::deque<rocksdb::Slice> &operands,
                           std::string *result, rocksdb::Logger *) const override
    {
        try {
            return part(key, operands, result);
        } catch (const std::exception &) {
            return false;
        }
    }

  private:
    bool whole(const MergeOperationInput &in, MergeOperationOutput *out) const
    {
        operand_array operands(in.operand_list);
        store_history history = {};
        history.key = from_slice(in.key);
        history.has_base = in.existing_value != nullptr;
        if (history.has_base)
            history.base = from_slice(*in.existing_value);
        history.operands = operands.data();
        history.operand_count = operands.count;
        operands_folded.count += operands.count;
        operands_folded.bytes += operands.total;
        if (history.has_base || operands.count > 1)
            operands_folded.waste += operands.total + operands.count * ENTRY_WASTE;

        scratch result;
        bytes same = {nullptr, 0};
        const void *rules = rules_of(folder.get());
        if (!folder->fold->whole(rules, &history, &result, &same) || result.failed) {
            lacked_memory |= result.failed;
            return false;
        }
        if (same.data != nullptr)
            out->existing_operand = to_slice(same);
        else
            out->new_value.assign(reinterpret_cast<const char *>(result.data), result.size);
        return true;
    }

    bool part(const rocksdb::Slice &key, const std::deque<rocksdb::Slice> &list,
              std::string *out) const
    {
        operand_array operands(list);
        store_history history = {};
        history.key = from_slice(key);
        history.operands = operands.data();
        history.operand_count = operands.count;

        const store_fold *fold = folder->fold;
        if (fold->gives_last != nullptr && fold->gives_last(&history)) {
            out->assign(list.back().data(), list.back().size());
            return true;
        }
        scratch result;
        const void *rules = rules_of(folder.get());
        if (!fold->part(rules, &history, &result) || result.failed)
            return false;
        out->assign(reinterpret_cast<const char *>(result.data), result.size);
        return true;
    }

    const std::shared_ptr<struct folder> folder;
};

class value_filter final : public rocksdb::CompactionFilter {
  public:
    explicit value_filter(std::shared_ptr<struct folder> folder_) : folder(std::move(folder_)) {}

    const char *Name() const override { return "trestle.tidy"; }

    /* A value that cannot be tidied for want of memory is kept: a later compaction will do it. */
    Decision FilterV2(int, const rocksdb::Slice &key, ValueType type, const rocksdb::Slice &value,
                      std::string *new_value, std::string *) const override
    {
        if (type != ValueType::kValue)
            return Decision::kKeep;
        scratch result;
        const void *rules = folder->rules.load(std::memory_order_acquire);
        switch (folder->fold->tidy(rules, from_slice(key), from_slice(value), &result)) {
        case STORE_REMOVE:
            return Decision::kRemove;
        case STORE_REPLACE:
            return replace(result, new_value);
        case STORE_KEEP:
            break;
        }
        return Decision::kKeep;
    }

  private:
    static Decision replace(const scratch &result, std::string *new_value)
    {
        if (result.failed)
            return Decision::kKeep;
        try {
            new_value->assign(reinterpret_cast<const char *>(result.data), result.size);
            return Decision::kChangeValue;
        } catch (const std::exception &) {
            return Decision::kKeep;
        }
    }

    const std::shared_ptr<struct folder> folder;
};

class value_filter_factory final : public rocksdb::CompactionFilterFactory {
  public:
    explicit value_filter_factory(std::shared_ptr<struct folder> folder_)
        : folder(std::move(folder_))
    {
    }

    const char *Name() const override { return "trestle.tidy"; }

    std::unique_ptr<rocksdb::CompactionFilter>
    CreateCompactionFilter(const rocksdb::CompactionFilter::Context &) override
    {
        return std::unique_ptr<rocksdb::CompactionFilter>(new (std::nothrow) value_filter(folder));
    }

  private:
    const std::shared_ptr<struct folder> folder;
};

} // namespace

fold_watch::fold_watch()
{
    forget_folds();
}

store_folded fold_watch::folded() const
{
    return operands_folded;
}

bool is_lack_of_memory(const rocksdb::Status &s)
{
    return s.IsCorruption() && lacked_memory;
}

void forget_folds()
{
    operands_folded = {};
    lacked_memory = false;
}

rules_scope::rules_scope(const void *rules)
{
    rules_instead = rules;
}

rules_scope::~rules_scope()
{
    rules_instead = nullptr;
}

std::shared_ptr<rocksdb::MergeOperator> make_merge_operator(std::shared_ptr<struct folder> folder)
{
    return std::make_shared<merge_operator>(std::move(folder));
}

std::shared_ptr<rocksdb::CompactionFilterFactory>
make_compaction_filter(std::shared_ptr<struct folder> folder)
{
    return std::make_shared<value_filter_factory>(std::move(folder));
}
