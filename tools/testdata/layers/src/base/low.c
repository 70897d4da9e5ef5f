#include "base/low.h"
#include "tablet/high.h"
#include <rocksdb/db.h>
#include <stdio.h>
#include "rocksdb/db.h"
#include "base/testing/testing.h"
