// Drives a Datastore server by Google's library for Java, over HTTP with protobuf, as it does by
// itself. (Over gRPC version 2.33.3 goes to Google whatever host it is told.)
//
//     mvn -q dependency:build-classpath -Dmdep.outputFile=classpath
//     DATASTORE_EMULATOR_HOST=127.0.0.1:8086 java -cp $(cat classpath) Entities.java PROJECT
//
// Prints a line for each thing that was as it should be, and ends with 1 if one was not.

import com.google.cloud.NoCredentials;
import com.google.cloud.Timestamp;
import com.google.cloud.datastore.AggregationResult;
import com.google.cloud.datastore.BaseEntity;
import com.google.cloud.datastore.Batch;
import com.google.cloud.datastore.Blob;
import com.google.cloud.datastore.BlobValue;
import com.google.cloud.datastore.Cursor;
import com.google.cloud.datastore.Datastore;
import com.google.cloud.datastore.DatastoreException;
import com.google.cloud.datastore.DatastoreOptions;
import com.google.cloud.datastore.Entity;
import com.google.cloud.datastore.EntityQuery;
import com.google.cloud.datastore.FullEntity;
import com.google.cloud.datastore.GqlQuery;
import com.google.cloud.datastore.IncompleteKey;
import com.google.cloud.datastore.Key;
import com.google.cloud.datastore.LatLng;
import com.google.cloud.datastore.ListValue;
import com.google.cloud.datastore.PathElement;
import com.google.cloud.datastore.ProjectionEntity;
import com.google.cloud.datastore.Query;
import com.google.cloud.datastore.QueryResults;
import com.google.cloud.datastore.ReadOption;
import com.google.cloud.datastore.StringValue;
import com.google.cloud.datastore.StructuredQuery;
import com.google.cloud.datastore.StructuredQuery.CompositeFilter;
import com.google.cloud.datastore.StructuredQuery.Filter;
import com.google.cloud.datastore.StructuredQuery.OrderBy;
import com.google.cloud.datastore.StructuredQuery.PropertyFilter;
import com.google.cloud.datastore.Transaction;
import com.google.cloud.datastore.aggregation.Aggregation;
import com.google.cloud.datastore.models.ExplainOptions;
import com.google.datastore.v1.TransactionOptions;
import com.google.datastore.v1.TransactionOptions.ReadOnly;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.stream.LongStream;

class Entities {
  static final int ITEMS = 350; // more than one batch

  final String project;
  final Datastore datastore;

  Entities(String project) {
    this.project = project;
    datastore = options().build().getService();
  }

  DatastoreOptions.Builder options() {
    DatastoreOptions.Builder builder = DatastoreOptions.newBuilder();
    builder.setProjectId(project).setCredentials(NoCredentials.getInstance());
    return builder;
  }

  static void same(Object got, Object want) {
    if (!Objects.equals(got, want)) throw new AssertionError("got " + got + ", want " + want);
  }

  static void refused(String words, Runnable run) {
    try {
      run.run();
    } catch (DatastoreException e) {
      String said = e.toString() + e.getCause();
      if (!said.contains(words)) throw new AssertionError(said);
      return;
    }
    throw new AssertionError("not refused: " + words);
  }

  Key key(String kind, String name) {
    return datastore.newKeyFactory().setKind(kind).newKey(name);
  }

  static Entity numbered(Key key, long n) {
    return Entity.newBuilder(key).set("n", n).build();
  }

  static List<Long> numbers(QueryResults<? extends BaseEntity<?>> found) {
    List<Long> numbers = new ArrayList<>();
    found.forEachRemaining(each -> numbers.add(each.getLong("n")));
    return numbers;
  }

  void values() {
    String text = "x".repeat(2000);
    IncompleteKey key =
        datastore.newKeyFactory().addAncestor(PathElement.of("P", 1)).setKind("All").newKey();
    StringValue hidden = StringValue.newBuilder(text).setExcludeFromIndexes(true).build();
    FullEntity<IncompleteKey> inner = Entity.newBuilder().set("a", 1).set("long", hidden).build();
    Blob large = Blob.copyFrom(text.getBytes());
    FullEntity<IncompleteKey> put =
        Entity.newBuilder(key)
            .set("int", Long.MIN_VALUE).set("double", 2.5).set("text", "é😀").set("bool", true)
            .setNull("nothing").set("when", Timestamp.parseTimestamp("2024-02-29T01:02:03.456789Z"))
            .set("blob", Blob.copyFrom(new byte[] {0, -1})).set("where", LatLng.of(52.5, -9.25))
            .set("list", "a", "b").set("none", ListValue.of(List.of())).set("key", key("A", "b"))
            .set("inner", inner)
            .set("large", BlobValue.newBuilder(large).setExcludeFromIndexes(true).build())
            .build();
    Entity made = datastore.put(put);
    Entity read = datastore.get(made.getKey());
    same(read, made);
    same(read.getProperties().size(), put.getProperties().size());
    same(Key.fromUrlSafe(read.getKey().toUrlSafe()), read.getKey());
    refused("longer than 1500 bytes", () ->
        datastore.put(Entity.newBuilder(key("T", "long")).set("text", text).build()));
  }

  void mutations() {
    Key one = key("T", "a"), two = key("T", "b");
    datastore.add(numbered(one, 1));
    refused("already exists", () -> datastore.add(numbered(one, 2)));
    refused("no entity to update", () -> datastore.update(numbered(two, 2)));
    datastore.update(numbered(one, 3));
    Batch batch = datastore.newBatch();
    batch.put(numbered(two, 4));
    batch.addWithDeferredIdAllocation(
        Entity.newBuilder(datastore.newKeyFactory().setKind("T").newKey()).set("n", 5).build());
    same(batch.submit().getGeneratedKeys().size(), 1);
    List<Entity> read = datastore.fetch(one, key("T", "gone"), two);
    same(List.of(read.get(0).getLong("n"), read.get(2).getLong("n")), List.of(3L, 4L));
    same(read.get(1), null);
    datastore.delete(one, two, one);
    same(datastore.get(one), null);
  }

  EntityQuery.Builder items() {
    return Query.newEntityQueryBuilder().setKind("Item");
  }

  void queries() {
    List<FullEntity<?>> items = new ArrayList<>();
    for (long n = 0; n < ITEMS; n++) {
      Key key = Key.newBuilder(key("Root", "r"), "Item", n + 1).build();
      Entity.Builder item = Entity.newBuilder(key).set("n", n).set("m", n % 7);
      items.add(item.set("tags", "all", "t" + n % 2).build());
    }
    datastore.put(items.toArray(FullEntity<?>[]::new));
    List<Long> all = LongStream.range(0, ITEMS).boxed().toList();
    Filter odd = PropertyFilter.eq("tags", "t1"), three = PropertyFilter.eq("m", 3);
    same(numbers(datastore.run(items().build())), all);
    found(CompositeFilter.and(PropertyFilter.gt("n", 5), PropertyFilter.le("n", 7)), 6L, 7L);
    found(CompositeFilter.and(three, odd, PropertyFilter.eq("n", 17)), 17L);
    found(PropertyFilter.in("n", ListValue.of(9, 4)), 4L, 9L);
    Filter both = CompositeFilter.and(three, PropertyFilter.eq("n", 3));
    found(CompositeFilter.or(PropertyFilter.eq("n", 5), both), 3L, 5L);
    found(PropertyFilter.hasAncestor(key("Root", "other")));
    firstTwo(items().setFilter(PropertyFilter.neq("n", 0)), 1L, 2L);
    firstTwo(items().setFilter(PropertyFilter.not_in("n", ListValue.of(0, 2))), 1L, 3L);
    firstTwo(items().setOrderBy(OrderBy.desc("n")).setOffset(310), 39L, 38L);
    same(datastore.run(Query.newKeyQueryBuilder().setKind("Item").build()).next().getId(), 1L);
    QueryResults<ProjectionEntity> parts =
        datastore.run(
            Query.newProjectionEntityQueryBuilder()
                .setKind("Item").setProjection("m").setDistinctOn("m").setOrderBy(OrderBy.asc("m"))
                .build());
    List<Long> distinct = new ArrayList<>();
    parts.forEachRemaining(each -> distinct.add(each.getLong("m")));
    same(distinct, List.of(0L, 1L, 2L, 3L, 4L, 5L, 6L));
    refused("recommended index is:", () ->
        datastore.run(items().setFilter(three).setOrderBy(OrderBy.desc("n")).build()).hasNext());
    var explained = datastore.run(items().setFilter(PropertyFilter.gt("n", 345)).build(),
        ExplainOptions.newBuilder().setAnalyze(true).build());
    same(numbers(explained).size(), 4);
    same(explained.getExplainMetrics().get().getExecutionStats().get().getResultsReturned(), 4L);
  }

  void found(Filter filter, Long... numbers) {
    same(numbers(datastore.run(items().setFilter(filter).build())), List.of(numbers));
  }

  void firstTwo(StructuredQuery.Builder<Entity> query, Long... numbers) {
    Query<Entity> asked = query.setLimit(2).build();
    same(numbers(datastore.run(asked, ReadOption.eventualConsistency())), List.of(numbers));
  }

  void cursors() {
    List<Long> found = new ArrayList<>();
    Cursor cursor = null;
    for (int count = 100; count == 100; ) {
      EntityQuery.Builder query = items().setOrderBy(OrderBy.asc("n")).setLimit(100);
      if (cursor != null) query.setStartCursor(Cursor.fromUrlSafe(cursor.toUrlSafe()));
      QueryResults<Entity> page = datastore.run(query.build());
      List<Long> numbers = numbers(page);
      found.addAll(numbers);
      count = numbers.size();
      cursor = page.getCursorAfter();
    }
    same(found, LongStream.range(0, ITEMS).boxed().toList());
  }

  static GqlQuery.Builder<Entity> gql(String text) {
    return Query.newGqlQueryBuilder(Query.ResultType.ENTITY, text);
  }

  void texts() {
    var bound = gql("SELECT * FROM Item WHERE n > @least AND n < @1 ORDER BY n DESC");
    bound.setBinding("least", 5).addBinding(8);
    same(numbers(datastore.run(bound.build())), List.of(7L, 6L));
    var literal = gql("SELECT * FROM Item WHERE n IN ARRAY(3, 1) AND m = 3").setAllowLiteral(true);
    same(numbers(datastore.run(literal.build())), List.of(3L));
    refused("line 1, column 1", () -> datastore.run(gql("SELEC").build()).hasNext());
    var text = gql("AGGREGATE COUNT(*) AS c OVER (SELECT * FROM Item WHERE n < 4)");
    var counted = Query.newAggregationQueryBuilder().over(text.setAllowLiteral(true).build());
    for (AggregationResult row : datastore.runAggregation(counted.build()))
      same(row.getLong("c"), 4L);
  }

  void aggregations() {
    var query =
        Query.newAggregationQueryBuilder()
            .over(items().setFilter(PropertyFilter.lt("n", 10)).build())
            .addAggregation(Aggregation.count().as("count"))
            .addAggregations(Aggregation.sum("n").as("sum"), Aggregation.avg("n").as("mean"))
            .build();
    for (AggregationResult row : datastore.runAggregation(query)) {
      same(List.of(row.getLong("count"), row.getLong("sum")), List.of(10L, 45L));
      same(row.getDouble("mean"), 4.5);
    }
  }

  /** Returns how often it was run. */
  int increment(Key key, Runnable between) {
    int[] turns = {0};
    for (int tries = 0; ; tries++) {
      try {
        return datastore.runInTransaction(transaction -> {
          turns[0]++;
          Entity read = transaction.get(key);
          transaction.put(numbered(key, read == null ? 1 : read.getLong("n") + 1));
          between.run();
          return turns[0];
        });
      } catch (DatastoreException e) {
        if (tries == 20) throw e;
      }
    }
  }

  void transactions() throws Exception {
    Key key = key("Counter", "retried"), shared = key("Counter", "shared");
    Datastore other = options().build().getService();
    int[] writes = {0};
    same(increment(key, () -> {
      if (++writes[0] < 3) other.put(numbered(key, writes[0] * 10));
    }), 3);
    same(datastore.get(key).getLong("n"), 21L);
    List<Thread> threads = new ArrayList<>();
    for (int at = 0; at < 4; at++)
      threads.add(new Thread(() -> {
        for (int n = 0; n < 5; n++) increment(shared, () -> {});
      }));
    threads.forEach(Thread::start);
    for (Thread thread : threads) thread.join();
    same(datastore.get(shared).getLong("n"), 20L);
    var readOnly =
        TransactionOptions.newBuilder().setReadOnly(ReadOnly.getDefaultInstance()).build();
    Transaction reading = datastore.newTransaction(readOnly);
    same(reading.get(shared).getLong("n"), 20L);
    var counters = Query.newEntityQueryBuilder().setKind("Counter");
    counters.setFilter(PropertyFilter.eq("n", 21));
    same(numbers(reading.run(counters.build())), List.of(21L));
    reading.commit();
    Transaction gone = datastore.newTransaction();
    gone.put(numbered(key, 500));
    gone.rollback();
    same(datastore.get(key).getLong("n"), 21L);
    refused("read-only", () ->
        datastore.runInTransaction(transaction -> transaction.put(numbered(key, 1)), readOnly));
  }

  void others() throws Exception {
    Key key = key("Past", "x");
    datastore.put(numbered(key, 1));
    Timestamp before = Timestamp.now();
    Thread.sleep(2);
    datastore.put(numbered(key, 2));
    same(datastore.get(key, ReadOption.readTime(before)).getLong("n"), 1L);
    IncompleteKey incomplete = datastore.newKeyFactory().setKind("K").newKey();
    List<Key> ids = datastore.allocateId(incomplete, incomplete);
    same(ids.get(0).equals(ids.get(1)), false);
    same(datastore.reserveIds(ids.get(0)).size(), 1);
    long n = 0;
    for (var builder : List.of(options().setDatabaseId("second"), options().setNamespace("n"))) {
      Datastore apart = builder.build().getService();
      Key there = apart.newKeyFactory().setKind("Apart").newKey("x");
      apart.put(numbered(there, ++n));
      same(apart.get(there).getLong("n"), n);
      same(numbers(apart.run(Query.newEntityQueryBuilder().setKind("Apart").build())), List.of(n));
    }
    same(datastore.get(key("Apart", "x")), null);
  }

  interface Check {
    void run() throws Exception;
  }

  static void check(String name, Check check) throws Exception {
    try {
      check.run();
    } catch (Throwable e) {
      e.printStackTrace();
      System.err.println("not " + name);
      System.exit(1);
    }
    System.out.println("ok " + name);
  }

  public static void main(String[] arguments) throws Exception {
    Entities of = new Entities(arguments[0]);
    check("values", of::values);
    check("mutations", of::mutations);
    check("queries", of::queries);
    check("cursors", of::cursors);
    check("texts", of::texts);
    check("aggregations", of::aggregations);
    check("transactions", of::transactions);
    check("others", of::others);
    System.exit(0); // the libraries' threads would stay a while
  }
}
