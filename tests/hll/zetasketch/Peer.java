import com.google.zetasketch.HyperLogLogPlusPlus;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;

/**
 * Google's sketches by the line. States are in hexadecimal; sp may be 0.
 *
 * <pre>
 * longs P SP FIRST LAST     the state of these numbers
 * strings P SP FIRST LAST   the state of their decimals
 * rewrite STATE             what was read, written again
 * merge STATE STATE         both in one
 * estimate STATE            how many values it has seen, about
 * </pre>
 */
final class Peer {
  private static final String DIGITS = "0123456789abcdef";

  private static byte[] fromHex(String text) {
    byte[] bytes = new byte[text.length() / 2];
    for (int i = 0; i < bytes.length; i++) {
      bytes[i] = (byte) Integer.parseInt(text.substring(2 * i, 2 * i + 2), 16);
    }
    return bytes;
  }

  private static String toHex(byte[] bytes) {
    StringBuilder text = new StringBuilder(2 * bytes.length);
    for (byte b : bytes) {
      text.append(DIGITS.charAt((b >> 4) & 15)).append(DIGITS.charAt(b & 15));
    }
    return text.toString();
  }

  private static HyperLogLogPlusPlus.Builder builder(String[] words) {
    int precision = Integer.parseInt(words[1]);
    int sparsePrecision = Integer.parseInt(words[2]);
    HyperLogLogPlusPlus.Builder builder =
        new HyperLogLogPlusPlus.Builder().normalPrecision(precision);
    return sparsePrecision == 0 ? builder.noSparseMode() : builder.sparsePrecision(sparsePrecision);
  }

  private static byte[] longs(String[] words) {
    HyperLogLogPlusPlus<Long> sketch = builder(words).buildForLongs();
    for (long i = Long.parseLong(words[3]); i <= Long.parseLong(words[4]); i++) {
      sketch.add(i);
    }
    return sketch.serializeToByteArray();
  }

  private static byte[] strings(String[] words) {
    HyperLogLogPlusPlus<String> sketch = builder(words).buildForStrings();
    for (long i = Long.parseLong(words[3]); i <= Long.parseLong(words[4]); i++) {
      sketch.add(Long.toString(i));
    }
    return sketch.serializeToByteArray();
  }

  private static byte[] merge(String[] words) {
    HyperLogLogPlusPlus<?> sketch = HyperLogLogPlusPlus.forProto(fromHex(words[1]));
    sketch.merge(fromHex(words[2]));
    return sketch.serializeToByteArray();
  }

  private static String answer(String[] words) {
    switch (words[0]) {
      case "longs":
        return toHex(longs(words));
      case "strings":
        return toHex(strings(words));
      case "merge":
        return toHex(merge(words));
      case "rewrite":
        return toHex(HyperLogLogPlusPlus.forProto(fromHex(words[1])).serializeToByteArray());
      case "estimate":
        return Long.toString(HyperLogLogPlusPlus.forProto(fromHex(words[1])).longResult());
      default:
        throw new IllegalArgumentException("no such command: " + words[0]);
    }
  }

  public static void main(String[] arguments) throws Exception {
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String answer;
      try {
        answer = answer(line.split(" "));
      } catch (RuntimeException e) {
        answer = "error " + e.getMessage();
      }
      System.out.println(answer);
    }
  }
}
