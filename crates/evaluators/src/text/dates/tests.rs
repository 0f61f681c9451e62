use super::*;

fn date(text: &str) -> Option<(Option<u32>, Option<u32>, Option<u32>)> {
    parse(text, (2026, 1, 1), 2026).map(|parsed| (parsed.year, parsed.month, parsed.day))
}

#[test]
fn texts_name_dates() {
    let day = Some((Some(2024), Some(1), Some(15)));
    for text in [
        "jan 15, 2024",
        "15 january 2024",
        "1/15/2024",
        "2024-01-15t10:20:30z",
        "20240115",
        "monday, january 15th 2024 at 3:30 pm",
        "15.1.2024",
        "15-jan-24",
        "jan-15-2024",
        "2024 jan 15",
        "1/15/24 12:00z",
    ] {
        assert_eq!(date(text), day, "{text}");
    }
    assert_eq!(date("240115"), Some((Some(2015), Some(1), Some(24))));
}

#[test]
fn parts_may_be_open() {
    assert_eq!(date("january 2024"), Some((Some(2024), Some(1), None)));
    assert_eq!(date("15"), Some((None, None, Some(15))));
    assert_eq!(date("10:30"), Some((None, None, None)));
    assert_eq!(date("1/2/99"), Some((Some(1999), Some(1), Some(2))));
}

#[test]
fn open_parts_are_those_of_the_present_day() {
    let today = (2023, 3, 31);
    let completed = |text: &str| parse(text, today, today.0).and_then(|parsed| parsed.completed(today));
    assert_eq!(completed("may 2023"), Some((2023, 5, 31)));
    assert_eq!(completed("april 2022"), Some((2022, 4, 30)));
    assert_eq!(completed("friday"), Some((2023, 3, 31)));
    assert_eq!(completed("monday"), Some((2023, 4, 3)));
    assert_eq!(completed("monday, 5 may"), Some((2023, 5, 5)));
    assert_eq!(completed("10:30"), Some(today));
    assert_eq!(calendar::with_century(73, 2023), 1973);
    assert_eq!(calendar::with_century(72, 2023), 2072);
}

#[test]
fn what_dateutil_refuses_is_refused() {
    for text in ["", "hello", "2024-13-45", "feb 30, 2024", "2024-01-15 25:00", "nan", "1 2 3 4", "1/15/24 12:00 gmt+3"]
    {
        assert_eq!(date(text), None, "{text}");
    }
}
