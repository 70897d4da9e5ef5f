// Reads a table's change stream by Apache Beam on its direct runner, as pipelines do.
//
//   BIGTABLE_EMULATOR_HOST=127.0.0.1:8086 java ... Changes PROJECT INSTANCE TABLE
//
// Prints "reading" once it begins, and a line "KEY VALUE" for each cell that a change sets, from
// then on and until it is ended: the source has no end.
//
// It is in the source's own package, for what Beam's own tests use to reach another server than
// Google's: with BIGTABLE_EMULATOR_HOST alone the source speaks TLS to it.
package org.apache.beam.sdk.io.gcp.bigtable;

import com.google.cloud.bigtable.admin.v2.BigtableInstanceAdminSettings;
import com.google.cloud.bigtable.admin.v2.BigtableTableAdminSettings;
import com.google.cloud.bigtable.data.v2.BigtableDataSettings;
import com.google.cloud.bigtable.data.v2.models.ChangeStreamMutation;
import com.google.cloud.bigtable.data.v2.models.Entry;
import com.google.cloud.bigtable.data.v2.models.SetCell;
import com.google.cloud.bigtable.data.v2.stub.EnhancedBigtableStubSettings;
import com.google.protobuf.ByteString;
import io.grpc.ManagedChannelBuilder;
import java.io.Serializable;
import org.apache.beam.sdk.Pipeline;
import org.apache.beam.sdk.io.gcp.bigtable.changestreams.dao.BigtableClientOverride;
import org.apache.beam.sdk.options.PipelineOptionsFactory;
import org.apache.beam.sdk.transforms.DoFn;
import org.apache.beam.sdk.transforms.ParDo;
import org.apache.beam.sdk.values.KV;
import org.joda.time.Instant;

public class Changes {
  static class Print extends DoFn<KV<ByteString, ChangeStreamMutation>, Void> {
    @ProcessElement
    public void process(@Element KV<ByteString, ChangeStreamMutation> change) {
      for (Entry entry : change.getValue().getEntries()) {
        if (entry instanceof SetCell set) {
          System.out.println(
              change.getKey().toStringUtf8() + " " + set.getValue().toStringUtf8());
        }
      }
    }
  }

  static class Plain implements BigtableClientOverride, Serializable {
    @Override
    public void updateInstanceAdminClientSettings(BigtableInstanceAdminSettings.Builder settings) {}

    @Override
    public void updateTableAdminClientSettings(BigtableTableAdminSettings.Builder settings) {}

    @Override
    public void updateDataClientSettings(BigtableDataSettings.Builder settings) {
      settings
          .stubSettings()
          .setTransportChannelProvider(
              EnhancedBigtableStubSettings.defaultGrpcTransportProviderBuilder()
                  .setChannelConfigurator(ManagedChannelBuilder::usePlaintext)
                  .build());
    }
  }

  public static void main(String[] arguments) {
    Pipeline pipeline = Pipeline.create(PipelineOptionsFactory.create());
    pipeline
        .apply(
            BigtableIO.readChangeStream()
                .withProjectId(arguments[0])
                .withInstanceId(arguments[1])
                .withTableId(arguments[2])
                .withAppProfileId("default")
                .withBigtableClientOverride(new Plain())
                .withStartTime(Instant.now()))
        .apply(ParDo.of(new Print()));
    System.out.println("reading");
    pipeline.run().waitUntilFinish();
  }
}
