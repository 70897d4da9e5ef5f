/* The methods that query: ds_run functions. */
#ifndef TRESTLE_DATASTORE_QUERY_QUERIES_H
#define TRESTLE_DATASTORE_QUERY_QUERIES_H

#include "datastore/ds_call.h"

ds_run ds_run_query;
ds_run ds_run_aggregation_query;

#endif
