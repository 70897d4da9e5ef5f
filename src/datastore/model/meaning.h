/* Meanings: numbers that say of a value what it stood for in older forms of the API. Each belongs
 * to one type of value. */
#ifndef TRESTLE_DATASTORE_MODEL_MEANING_H
#define TRESTLE_DATASTORE_MODEL_MEANING_H

#include "base/status.h"
#include "google/datastore/v1/entity.pb-c.h"

/* INVALID_ARGUMENT if a value that is to be stored cannot have its meaning, or is an array that
 * says what only its elements may say. Elements are not looked at. `name`: of the property, for the
 * words. */
status ds_meaning_check(const Ds__Value *value, const char *name);

#endif
