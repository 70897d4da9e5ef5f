// Stands for two environments of the adapter's tests that are not used, and need more libraries.

package com.google.cloud.bigtable.hbase.test_env;

class MiniClusterEnv extends SharedTestEnv {
  @Override
  protected void setup() {
    throw new UnsupportedOperationException();
  }

  @Override
  protected void teardown() {}
}

class EmulatorEnv extends MiniClusterEnv {}
