/* BeginTransaction and Rollback. */
#include "datastore/commit/reading.h"
#include "datastore/commit/transaction.h"
#include "datastore/methods.h"

status ds_begin_transaction(struct ds_call *call, const ProtobufCMessage *message,
                            ProtobufCMessage **response)
{
    const Ds__BeginTransactionRequest *request = (const Ds__BeginTransactionRequest *)message;
    struct ds_transaction *transaction;
    Ds__BeginTransactionResponse *answer;
    PROTO_NEW(call->arena, answer, DS__BEGIN_TRANSACTION_RESPONSE__INIT);
    TRY(ds_begin(call, request->transaction_options, &transaction));
    bytes id = arena_copy(call->arena, bytes_make(transaction->id, DS_TRANSACTION_ID_SIZE));
    ds_transaction_give_back(call->datastore->transactions, transaction);
    if (id.data == NULL)
        return status_out_of_memory();
    answer->transaction = proto_data(id);
    *response = &answer->base;
    return status_ok();
}

status ds_rollback(struct ds_call *call, const ProtobufCMessage *message,
                   ProtobufCMessage **response)
{
    const Ds__RollbackRequest *request = (const Ds__RollbackRequest *)message;
    struct ds_database database = {call->project_id, call->database_id};
    Ds__RollbackResponse *answer;
    PROTO_NEW(call->arena, answer, DS__ROLLBACK_RESPONSE__INIT);
    if (request->transaction.len == 0)
        return status_make(STATUS_INVALID_ARGUMENT, "transaction required");
    TRY(ds_transaction_roll_back(call->datastore->transactions, proto_bytes(request->transaction),
                                 &database));
    *response = &answer->base;
    return status_ok();
}
