// Runs a class of JUnit tests and prints a line for each: "#passed", "#failed" or "#skipped", the
// test's name, and why.

package com.google.cloud.bigtable.test_helpers.env;

import java.util.Arrays;
import org.junit.experimental.categories.Category;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;

public class Run extends RunListener {
  private boolean told;

  /** "KnownGap" if the test is of that category, by itself or with its class. */
  private static String gap(Description test) {
    Category own = test.getAnnotation(Category.class);
    Category all = test.getTestClass().getAnnotation(Category.class);
    String categories =
        (own == null ? "" : Arrays.toString(own.value()))
            + (all == null ? "" : Arrays.toString(all.value()));
    return categories.contains("KnownGap") ? "KnownGap" : "";
  }

  private void tell(String status, Description test, Throwable why) {
    String name = test.getTestClass().getSimpleName();
    name += test.getMethodName() == null ? "" : "." + test.getMethodName();
    name += gap(test).isEmpty() ? "" : "@" + gap(test);
    String message = why == null ? "" : why.toString();
    if (why != null && why.getCause() != null) {
      message += "\n" + why.getCause();
    }
    System.out.println(
        "\n#" + status + "\t" + name.replaceAll("\\s", "_") + "\t" + message.replace("\n", "\\n"));
    told = true;
  }

  @Override
  public void testStarted(Description test) {
    told = false;
  }

  @Override
  public void testFailure(Failure failure) {
    tell("failed", failure.getDescription(), failure.getException());
  }

  @Override
  public void testAssumptionFailure(Failure failure) {
    tell("skipped", failure.getDescription(), failure.getException());
  }

  @Override
  public void testIgnored(Description test) {
    tell("skipped", test, new Exception("is ignored"));
  }

  @Override
  public void testFinished(Description test) {
    if (!told) {
      tell("passed", test, null);
    }
  }

  public static void main(String[] arguments) throws Exception {
    JUnitCore core = new JUnitCore();
    core.addListener(new Run());
    boolean good = core.run(Class.forName(arguments[0])).wasSuccessful();
    System.exit(good ? 0 : 1);
  }
}
