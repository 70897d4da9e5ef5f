// A topic of a broker of Kafka, for tests of what is written to it:
//
//     Topic BROKER make TOPIC PARTITIONS BYTES    BYTES: the most that a message may have
//     Topic BROKER read TOPIC PARTITIONS          all that is in it: partition, key and value, as
//                                                 base64, a line each
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Topic {
    public static void main(String[] arguments) throws Exception {
        int partitions = Integer.parseInt(arguments[3]);
        if (arguments[1].equals("make")) {
            make(arguments[0], arguments[2], partitions, arguments[4]);
        } else {
            read(arguments[0], arguments[2], partitions);
        }
    }

    static void make(String broker, String topic, int partitions, String bytes) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", broker))) {
            NewTopic made = new NewTopic(topic, partitions, (short) 1);
            made.configs(Map.of("max.message.bytes", bytes));
            admin.createTopics(List.of(made)).all().get();
        }
    }

    static void read(String broker, String topic, int partitions) {
        Map<String, Object> options = Map.of("bootstrap.servers", broker);
        ByteArrayDeserializer plain = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<byte[], byte[]>(options, plain, plain)) {
            List<TopicPartition> all = new ArrayList<>();
            for (int i = 0; i < partitions; i++) {
                all.add(new TopicPartition(topic, i));
            }
            consumer.assign(all);
            consumer.seekToBeginning(all);
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            while (all.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
                consumer.poll(Duration.ofSeconds(1)).forEach(Topic::print);
            }
        }
    }

    static void print(ConsumerRecord<byte[], byte[]> message) {
        Base64.Encoder text = Base64.getEncoder();
        System.out.println(message.partition() + " " + text.encodeToString(message.key()) + " "
                + text.encodeToString(message.value()));
    }
}
