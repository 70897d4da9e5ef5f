#include "proto/bigtable.pb-c.h"
